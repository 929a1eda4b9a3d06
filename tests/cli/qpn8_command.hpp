#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/run_command.hpp"
#include "support/shared_data.hpp"

namespace qpn8::test {

/// A command line of the program that was just built.
inline Command qpn8_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), QPN8_BINARY);
  return {.arguments = std::move(arguments)};
}

inline CommandResult run_qpn8(std::vector<std::string> arguments) {
  return run_command(qpn8_command(std::move(arguments)));
}

/// A random model without a tokenizer: 8 heads, 512 tokens of vocabulary and of context.
inline std::string tiny_model() { return (data() / "tiny-qwen3").string(); }

/// The bundled model, with tokenizer and chat template; 1024 tokens of vocabulary and of context.
inline std::string bundled_model() { return (repository() / "models/wordmath-11m").string(); }

}  // namespace qpn8::test
