#include <fmt/format.h>

#include "base/buffer.hpp"
#include "qpn8/error.hpp"
#include "qpn8/linear.hpp"

namespace qpn8 {

class Workspace::Memory : public Buffer {
 public:
  using Buffer::Buffer;
};

Workspace::Workspace(std::size_t bytes) : memory_(std::make_unique<Memory>(bytes)) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

std::size_t Workspace::capacity() const { return memory_->size(); }

std::span<std::byte> Workspace::claim(std::size_t bytes) {
  if (bytes > capacity()) {
    throw Error(Error::bad_argument,
                fmt::format("workspace: holds {} bytes, but this product needs at least {}", capacity(), bytes));
  }
  return memory_->bytes().first(bytes);
}

}  // namespace qpn8
