#include "base/buffer.hpp"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace qpn8 {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Buffer::Buffer(std::size_t bytes, Pages pages) : size_(bytes) {
  if (bytes == 0) return;
  const bool huge = pages == Pages::huge && bytes >= kHugePage;
  mapped_ = round_up(bytes, huge ? kHugePage : kPage);
  void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(memory);
  // Only advice: where the system refuses it the memory works all the same, in small pages.
  madvise(memory, mapped_, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, mapped_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

}  // namespace qpn8
