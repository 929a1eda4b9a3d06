#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "cli/commands.hpp"
#include "cli/common_options.hpp"
#include "cli/output.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cli {
namespace {

// One line, whatever the message holds: it may quote a file's name or a flag's value.
int fail(Error::Kind kind, std::string message) {
  std::replace_if(
      message.begin(), message.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  std::fprintf(stderr, "qpn8: %s\n", message.c_str());
  return Error::exit_status(kind);
}

// A file opened later must not land on the number of a standard stream that the parent closed, where results or
// messages would be written into it. Reading nothing, and failing to write, is what the closed stream would have done.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    const int opened = open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened > stream) close(opened);
  }
}

std::string describe(const CLI::ExtrasError& /*error*/, const CLI::App& program) {
  const auto commands = program.get_subcommands();
  const std::string name = commands.empty() ? "qpn8" : "qpn8 " + commands.front()->get_name();
  const auto extras = program.remaining(/*recurse=*/true);
  return (extras.empty() ? "an argument" : extras.front()) + ": unexpected; see '" + name + " --help'";
}

// The line of a command line that does not parse. CLI11's own texts name the flag first.
int explain(const CLI::ParseError& error, const CLI::App& program) {
  if (const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&error)) {
    return fail(Error::bad_argument, describe(*extras, program));
  }
  return fail(Error::bad_argument, error.what());
}

/// The help of the command that was chosen, or of the program.
std::string help_of(const CLI::App& program) {
  const auto commands = program.get_subcommands();
  return commands.empty() ? program.help() : commands.front()->help(program.get_name());
}

void add_help(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("help", "Print the help of a command");
  const auto topic = std::make_shared<std::string>();
  command.add_option("command", *topic, "the command; all of them if none is named")->type_name("NAME");
  command.callback([&program, topic] {
    const auto is_topic = [&](const CLI::App* other) { return other->get_name() == *topic; };
    const auto commands = program.get_subcommands(is_topic);
    if (commands.empty() && !topic->empty()) {
      throw Error(Error::bad_argument, *topic + ": is not a command; 'qpn8 --help' lists them");
    }
    // App::help() of the program would be that of the command "help", which was chosen.
    write_output(commands.empty()
                     ? program.get_formatter()->make_help(&program, program.get_name(), CLI::AppFormatMode::Normal)
                     : commands.front()->help(program.get_name()));
  });
}

int run(int argc, char** argv) {
  CLI::App program("Decodes language models at low batch, with 8-bit projections where a contract admits them.",
                   "qpn8");
  program.set_version_flag("--version", "qpn8 " QPN8_VERSION, "Print the version and exit");
  for (const auto add :
       {add_run, add_plan, add_ab, add_audit, add_bench, add_tune, add_score, add_tokenize, add_synth}) {
    add(program);
  }
  add_help(program);
  program.require_subcommand(0, 1);
  try {
    program.parse(argc, argv);
    if (!program.get_subcommands().empty()) return 0;
    throw Error(Error::bad_argument, "a command is missing; see 'qpn8 --help'");
  } catch (const CLI::CallForHelp&) {
    write_output(help_of(program));
  } catch (const CLI::CallForVersion& version) {
    write_output(std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    return explain(error, program);
  }
  return 0;
}

}  // namespace
}  // namespace qpn8::cli

int main(int argc, char** argv) {
  using qpn8::cli::fail;
  try {
    qpn8::cli::occupy_standard_streams();
    std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of the write
    std::signal(SIGXFSZ, SIG_IGN);  // so is a file that may not grow
    qpn8::cli::start_logging();
    return qpn8::cli::run(argc, argv);
  } catch (const qpn8::Error& error) {
    return fail(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(qpn8::Error::missing_capability, "out of memory");
  } catch (const std::exception& error) {
    return fail(qpn8::Error::bad_argument, error.what());
  } catch (...) {
    return fail(qpn8::Error::bad_argument, "unknown error");
  }
}
