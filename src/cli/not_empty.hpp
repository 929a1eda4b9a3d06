#pragma once

#include <CLI/Validators.hpp>
#include <string>

namespace qpn8::cli {

/// The check of a flag whose value must not be empty; `expected` is what would be right ("a folder"). An empty path
/// would otherwise be the working folder, and an empty name no name.
inline CLI::Validator not_empty(const std::string& expected) {
  const auto check = [expected](const std::string& value) {
    return value.empty() ? "is empty; expected " + expected : std::string();
  };
  return {check, /*validator_desc=*/"", /*validator_name=*/"not empty"};
}

}  // namespace qpn8::cli
