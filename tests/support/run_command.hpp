#pragma once

#include <map>
#include <string>
#include <vector>

namespace qpn8::test {

enum class Stdout { captured, closed, unread };  ///< unread: a pipe whose reader went away

struct Command {
  std::vector<std::string> arguments;                   ///< the program first
  std::string input = {};                               ///< its stdin
  std::string input_path = {};                          ///< what its stdin is opened from instead, if given
  std::map<std::string, std::string> environment = {};  ///< beside this process's own
  Stdout output = Stdout::captured;
};

struct CommandResult {
  int status = 0;  ///< the exit status, or 128 and the signal's number
  std::string out;
  std::string err;
};

/// Runs a program to its end.
CommandResult run_command(const Command& command);

}  // namespace qpn8::test
