#include "base/input_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

[[noreturn]] void fail_read(const std::string& name) {
  throw Error(Error::bad_file, name + ": " + std::generic_category().message(errno));
}

class DescriptorBuffer : public std::streambuf {
 public:
  DescriptorBuffer(int descriptor, bool owned, std::string name)
      : descriptor_(descriptor), owned_(owned), name_(std::move(name)) {}
  ~DescriptorBuffer() override {
    if (owned_) close(descriptor_);
  }
  DescriptorBuffer(const DescriptorBuffer&) = delete;
  DescriptorBuffer& operator=(const DescriptorBuffer&) = delete;

 protected:
  int_type underflow() override {
    ssize_t count = 0;
    do {
      count = ::read(descriptor_, block_.data(), block_.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) fail_read(name_);
    setg(block_.data(), block_.data(), block_.data() + count);
    return count == 0 ? traits_type::eof() : traits_type::to_int_type(block_.front());
  }

 private:
  int descriptor_;
  bool owned_;
  std::string name_;
  std::array<char, 1 << 16> block_{};
};

int open_for_reading(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_read(file.string());
  return descriptor;
}

}  // namespace

InputStream::InputStream(const std::filesystem::path& file)
    : std::istream(nullptr),
      name_(file.string()),
      buffer_(std::make_unique<DescriptorBuffer>(open_for_reading(file), /*owned=*/true, name_)) {
  rdbuf(buffer_.get());
  exceptions(std::ios::badbit);  // has the streambuf's Error thrown on by the functions that read
}

InputStream::InputStream(int descriptor, std::string name)
    : std::istream(nullptr),
      name_(std::move(name)),
      buffer_(std::make_unique<DescriptorBuffer>(descriptor, /*owned=*/false, name_)) {
  rdbuf(buffer_.get());
  exceptions(std::ios::badbit);
}

InputStream::~InputStream() = default;

std::string InputStream::read_to_end(std::size_t most) {
  std::string text;
  std::array<char, 1 << 16> block{};
  while (true) {
    read(block.data(), block.size());
    text.append(block.data(), static_cast<std::size_t>(gcount()));
    if (text.size() > most) {
      throw Error(Error::bad_file, fmt::format("{}: is longer than {} MiB, the most that is read", name_, most >> 20U));
    }
    if (eof()) return text;
  }
}

}  // namespace qpn8
