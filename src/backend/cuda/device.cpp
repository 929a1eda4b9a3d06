#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "backend/cuda_backend.hpp"
#include "kernels/cuda/check.hpp"

namespace qpn8 {
namespace {

constexpr int kOldestCapability = 80;  // m16n8k16, and 16-byte asynchronous copies

}  // namespace

CudaDevice find_cuda_device() {
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return {.hardware = std::nullopt, .absence = cudaGetErrorString(status)};
  }
  int major = 0;
  int minor = 0;
  cuda::check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  cuda::check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "cudaDeviceGetAttribute");
  const int capability = 10 * major + minor;
  if (capability < kOldestCapability) {
    return {.hardware = std::nullopt,
            .absence = fmt::format("the GPU has compute capability {}.{}, {}.{} or newer is needed", major, minor,
                                   kOldestCapability / 10, kOldestCapability % 10)};
  }
  return {.hardware = Hardware{.kind = HardwareKind::cuda, .isa = "", .compute_capability = capability}, .absence = ""};
}

}  // namespace qpn8
