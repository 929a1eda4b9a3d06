#pragma once

#include <cstddef>
#include <filesystem>
#include <istream>
#include <memory>
#include <streambuf>
#include <string>

namespace qpn8 {

/// A file, a pipe or standard input, read front to back. A read that fails is Error::bad_file naming the input, thrown
/// through whatever reads the stream, so that it never passes for the end of the input.
class InputStream : public std::istream {
 public:
  /// Error::bad_file if the file cannot be opened. Opening a pipe waits for its writer.
  explicit InputStream(const std::filesystem::path& file);

  /// A descriptor that stays the caller's.
  InputStream(int descriptor, std::string name);

  ~InputStream() override;
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  const std::string& name() const { return name_; }

  /// All that is left; more than `most` bytes are Error::bad_file, so that an endless input comes to an end.
  std::string read_to_end(std::size_t most);

 private:
  std::string name_;
  std::unique_ptr<std::streambuf> buffer_;
};

}  // namespace qpn8
