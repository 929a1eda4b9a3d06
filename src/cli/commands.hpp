#pragma once

#include <CLI/CLI.hpp>

namespace qpn8 {

// One function a subcommand: adds it to the program with a callback that does the work and throws Error.
void add_tokenize(CLI::App& app);

}  // namespace qpn8
