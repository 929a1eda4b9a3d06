#include "cli/output.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "qpn8/error.hpp"

namespace qpn8::cli {

void write_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      throw Error(Error::bad_file, "stdout: " + std::generic_category().message(errno));
    }
  }
}

}  // namespace qpn8::cli
