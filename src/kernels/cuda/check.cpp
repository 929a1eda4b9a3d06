#include "kernels/cuda/check.hpp"

#include <fmt/format.h>

#include <string_view>

#include "qpn8/error.hpp"

namespace qpn8::cuda {
namespace {

std::string_view advice(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "free memory on the GPU, or ask for less with --engine-arg max_model_len=N";
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
      return "a GPU with a driver for this build's CUDA is needed; --device cpu needs neither";
    case cudaErrorNoKernelImageForDevice:
      return "build for this GPU with -DCMAKE_CUDA_ARCHITECTURES, or use --device cpu";
    default:
      return "--device cpu does without the GPU";
  }
}

std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

void check_cuda(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // a recoverable error is not reported again by the next launch
  throw Error(Error::missing_capability, fmt::format("{} ({}:{}): {}; {}", call, file_name(file), line,
                                                     cudaGetErrorString(status), advice(status)));
}

void check_launch(const char* kernel, const char* file, int line) {
  check_cuda(cudaGetLastError(), kernel, file, line);
}

void allow_shared_memory(const void* kernel, std::size_t dynamic_bytes, const char* name) {
  constexpr std::size_t kAlwaysThere = std::size_t{32} << 10;
  if (dynamic_bytes <= kAlwaysThere) return;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(dynamic_bytes)),
             name);
}

}  // namespace qpn8::cuda
