#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/engine_options.hpp"
#include "engine/load_observer.hpp"

namespace qpn8::cli {

/// The flags of every command that sets up an engine, and their meeting with --engine-arg.
///
/// A flag is the same as its engine argument. Of equal engine arguments the last wins; a flag and an engine argument
/// that say different things are an error, so that nothing is dropped silently.
class CommonOptions {
 public:
  /// Adds --device, --threads, --tp, --pp, --qpn8, --contract, --engine-arg and --log-level. The object has to outlive
  /// the parsing.
  void add_to(CLI::App& command);

  /// Flags and engine arguments as one object, for EngineOptions::apply. Error::bad_argument names a flag or an
  /// argument with a wrong value, and two that contradict each other.
  nlohmann::ordered_json engine_args() const;

  /// The same, applied to the defaults.
  EngineOptions engine_options() const;

 private:
  struct GivenFlag {
    std::string flag;
    std::string key;
    nlohmann::ordered_json value;
  };

  std::vector<GivenFlag> flags_;
  std::vector<std::string> contracts_;
  std::vector<std::string> engine_args_;
};

/// Prints the start-up line at log level `info`, and the progress of loading on a terminal.
LoadObserver stderr_observer();

/// Sends log lines to stderr without any decoration; `info` and what is graver is shown until --log-level is read.
void start_logging();

}  // namespace qpn8::cli
