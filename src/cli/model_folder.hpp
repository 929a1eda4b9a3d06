#pragma once

#include <CLI/Validators.hpp>
#include <filesystem>
#include <string>
#include <system_error>

namespace qpn8::cli {

/// The check of --model. A path that is no folder would otherwise be blamed on the first file that is looked for in it.
inline CLI::Validator model_folder() {
  const auto check = [](const std::string& path) -> std::string {
    if (path.empty()) return "is empty; expected a folder";
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return "";
    return path + " is not a folder; expected a Hugging Face folder, with config.json and *.safetensors";
  };
  return {check, /*validator_desc=*/"", /*validator_name=*/"model folder"};
}

}  // namespace qpn8::cli
