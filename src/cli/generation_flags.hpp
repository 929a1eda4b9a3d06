#pragma once

#include <CLI/App.hpp>

#include "engine/generation_request.hpp"

namespace qpn8::cli {

/// Adds the flags of how tokens are chosen and when an output ends: everything of a request but its prompt and its
/// seed. The request has to outlive the parsing; whether it is valid is for its validate() to say.
void add_generation_flags(CLI::App& command, GenerationRequest& request);

}  // namespace qpn8::cli
