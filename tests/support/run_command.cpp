#include "support/run_command.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace qpn8::test {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using TemporaryFile = std::unique_ptr<std::FILE, CloseFile>;

// Files instead of pipes: they take any amount without anybody reading.
TemporaryFile temporary_file() {
  TemporaryFile file(std::tmpfile());
  if (!file) throw std::runtime_error("no temporary file");
  return file;
}

std::string content(std::FILE* file) {
  std::string text;
  std::rewind(file);
  std::array<char, 4096> block{};
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), file)) text.append(block.data(), count);
  return text;
}

void redirect_output(Stdout output, int captured) {
  if (output == Stdout::captured) dup2(captured, STDOUT_FILENO);
  if (output == Stdout::closed) close(STDOUT_FILENO);
  if (output == Stdout::unread) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) _exit(125);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
  }
}

}  // namespace

CommandResult run_command(const Command& command) {
  const TemporaryFile in = temporary_file();
  const TemporaryFile out = temporary_file();
  const TemporaryFile err = temporary_file();
  std::fwrite(command.input.data(), 1, command.input.size(), in.get());
  std::rewind(in.get());

  std::vector<char*> arguments;
  for (const std::string& argument : command.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    for (const auto& [name, value] : command.environment) setenv(name.c_str(), value.c_str(), 1);
    dup2(command.input_path.empty() ? fileno(in.get()) : open(command.input_path.c_str(), O_RDONLY), STDIN_FILENO);
    dup2(fileno(err.get()), STDERR_FILENO);
    redirect_output(command.output, fileno(out.get()));
    execv(arguments.front(), arguments.data());
    _exit(126);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid");
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, content(out.get()), content(err.get())};
}

}  // namespace qpn8::test
