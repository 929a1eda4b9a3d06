#include "backend/cuda_backend.hpp"
#include "qpn8/error.hpp"

// What takes the place of the folder cuda/ in a build without CUDA.

namespace qpn8 {

CudaDevice find_cuda_device() { return {.hardware = std::nullopt, .absence = "this qpn8 is built without CUDA"}; }

std::unique_ptr<Backend> make_cuda_backend(const CudaBackendOptions& /*options*/) {
  throw Error(Error::missing_capability, "device \"cuda\": " + find_cuda_device().absence);
}

}  // namespace qpn8
