#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/common_options.hpp"
#include "engine/front_end.hpp"
#include "engine/generation_request.hpp"
#include "evidence/arm.hpp"
#include "evidence/dataset.hpp"

namespace qpn8::cli {

/// The two arms of a comparison, ready to answer.
struct Arms {
  std::unique_ptr<Arm> a;
  std::unique_ptr<Arm> b;
};

/// Whether the arms would do the same: equal options; or plans with equal projections, and options that are equal but
/// for those that make the plan.
bool are_alike(const Arms& arms);

/// The two arms from their flags, in two steps: what can be wrong without weights is found before any are loaded.
class ArmLoader {
 public:
  struct Flags {
    const CommonOptions& common;  ///< of both arms
    const std::filesystem::path& model;
    const std::vector<std::string>& args_a;
    const std::vector<std::string>& args_b;
  };

  /// Parses both arms' arguments and reads the engines' front ends. `request` is what each output is asked with.
  ArmLoader(const Flags& flags, GenerationRequest request);

  /// Error::bad_argument names the first item that an engine cannot take: one whose first turn does not fit its
  /// context. Returns a sentence for each arm whose context leaves an item less than the tokens asked for.
  std::vector<std::string> require_items(const std::vector<DatasetItem>& items) const;

  /// As Arm::config of the arm that will be.
  nlohmann::ordered_json config_a() const { return a_.config(); }
  nlohmann::ordered_json config_b() const { return b_.config(); }

  /// Loads the engines, once; those with equal options are one. The candidate comes first: it is the one that may lack
  /// what the comparison is about (Error::missing_capability, before its weights).
  Arms load();

 private:
  /// One arm: a server, which is there already, or what an engine is loaded from.
  struct Spec {
    std::unique_ptr<Arm> server;
    std::optional<FrontEnd> front_end;

    nlohmann::ordered_json config() const;
  };

  Spec parse(const Flags& flags, const std::vector<std::string>& own_args) const;

  GenerationRequest request_;
  Spec a_;
  Spec b_;
};

}  // namespace qpn8::cli
