#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"

namespace qpn8::test {

/// A copy of a model's folder in which config.json has other values; a null removes a key.
class EditedModel {
 public:
  EditedModel(const std::filesystem::path& model, const nlohmann::json& changes) {
    std::filesystem::copy(model, folder_.path());
    nlohmann::json config = nlohmann::json::parse(read_text(model / "config.json"));
    config.merge_patch(changes);
    folder_.write("config.json", config.dump());
  }

  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace qpn8::test
