#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/scratch_folder.hpp"

namespace qpn8::test {

/// An empty folder of a test's own, removed with everything in it.
class TemporaryFolder {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path() / name; }

  /// Writes a file of it and returns its path.
  std::filesystem::path write(const std::filesystem::path& name, std::string_view content) const {
    std::ofstream(path() / name, std::ios::binary) << content;
    return path() / name;
  }

  /// A FIFO that nobody has open: whoever opens it as a file waits for ever.
  std::filesystem::path make_fifo(const std::filesystem::path& name) const {
    if (mkfifo((path() / name).c_str(), 0600) != 0) throw std::runtime_error("no FIFO " + name.string());
    return path() / name;
  }

 private:
  ScratchFolder folder_;
};

/// A file's bytes.
inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline void write_text(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace qpn8::test
