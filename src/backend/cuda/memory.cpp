#include "backend/cuda/memory.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>

#include "kernels/cuda/check.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cuda {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{4} << 20;

/// Pieces of `width` bytes; without gaps they are one, however long.
void queue_copy(std::byte* target, std::size_t target_pitch, const std::byte* source, std::size_t source_pitch,
                std::size_t width, std::size_t rows, cudaMemcpyKind kind, const Stream& stream) {
  if (target_pitch == width && source_pitch == width) {
    check_cuda(cudaMemcpyAsync(target, source, width * rows, kind, stream.handle), "cudaMemcpyAsync");
  } else {
    check_cuda(cudaMemcpy2DAsync(target, target_pitch, source, source_pitch, width, rows, kind, stream.handle),
               "cudaMemcpy2DAsync");
  }
}

[[noreturn]] void raise_no_room(std::size_t bytes, std::string_view what) {
  static_cast<void>(cudaGetLastError());
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  throw Error(
      Error::missing_capability,
      fmt::format("{}: {} bytes ({:.1f} GiB) of GPU memory are needed, {:.1f} of {:.1f} GiB are free; a smaller "
                  "model or --engine-arg max_model_len=N needs less",
                  what, bytes, static_cast<double>(bytes) / (1 << 30), static_cast<double>(free) / (1 << 30),
                  static_cast<double>(total) / (1 << 30)));
}

}  // namespace

DeviceBuffer::DeviceBuffer(std::size_t bytes, std::string_view what) : size_(bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) raise_no_room(bytes, what);
  check_cuda(status, "cudaMalloc");
  data_ = static_cast<std::byte*>(memory);
}

DeviceBuffer::~DeviceBuffer() { static_cast<void>(cudaFree(data_)); }

void DeviceBuffer::clear() const {
  if (size_ > 0) check_cuda(cudaMemset(data_, 0, size_), "cudaMemset");
}

void DeviceBuffer::fill(std::span<const std::byte> source) const {
  check_cuda(cudaMemcpy(data_, source.data(), source.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  // cudaMemcpy returns when the source has been read, and the stream of the kernels does not wait for it.
  check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
}

TransferBuffer::TransferBuffer(const Stream& stream) : stream_(stream) {
  void* memory = nullptr;
  check_cuda(cudaMallocHost(&memory, kStagingBytes), "cudaMallocHost");
  staging_ = static_cast<std::byte*>(memory);
}

TransferBuffer::~TransferBuffer() { static_cast<void>(cudaFreeHost(staging_)); }

void TransferBuffer::write(std::byte* target, std::size_t target_pitch, const std::byte* source, std::size_t width,
                           std::size_t rows) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t bytes = width * rows;
  if (bytes > kStagingBytes) {
    queue_copy(target, target_pitch, source, width, width, rows, cudaMemcpyHostToDevice, stream_);
    check_cuda(cudaStreamSynchronize(stream_.handle), "cudaStreamSynchronize");
    return;
  }
  if (used_ + bytes > kStagingBytes) {
    check_cuda(cudaStreamSynchronize(stream_.handle), "cudaStreamSynchronize");
    used_ = 0;
  }
  std::byte* staged = staging_ + used_;
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  std::memcpy(staged, source, bytes);
  queue_copy(target, target_pitch, staged, width, width, rows, cudaMemcpyHostToDevice, stream_);
}

void TransferBuffer::read(std::byte* target, const std::byte* source, std::size_t source_pitch, std::size_t width,
                          std::size_t rows) {
  // Through the staging memory, which is an order of magnitude faster, where it is large enough.
  const std::size_t bytes = width * rows;
  std::byte* landing = bytes <= kStagingBytes - used_ ? staging_ + used_ : target;
  queue_copy(landing, width, source, source_pitch, width, rows, cudaMemcpyDeviceToHost, stream_);
  check_cuda(cudaStreamSynchronize(stream_.handle), "cudaStreamSynchronize");
  used_ = 0;
  if (landing != target) std::memcpy(target, landing, bytes);
}

}  // namespace qpn8::cuda
