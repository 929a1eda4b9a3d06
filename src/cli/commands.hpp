#pragma once

#include <CLI/App.hpp>

namespace qpn8::cli {

/// Each adds one subcommand to the program. The work is done in the subcommand's callback: results go to stdout through
/// cli/output.hpp, and whatever goes wrong is an Error, which main turns into one line and the exit status.
void add_run(CLI::App& program);
void add_plan(CLI::App& program);
void add_tokenize(CLI::App& program);
void add_synth(CLI::App& program);
void add_score(CLI::App& program);
void add_ab(CLI::App& program);
void add_audit(CLI::App& program);
void add_bench(CLI::App& program);
void add_tune(CLI::App& program);

}  // namespace qpn8::cli
