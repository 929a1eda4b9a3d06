#include "measure/gpu_probe.hpp"
#include "qpn8/error.hpp"

// What a build without CUDA has of gpu_probe.hpp.

namespace qpn8 {
namespace {

[[noreturn]] void refuse(const Hardware& hardware) {
  throw Error(Error::unsupported, to_string(hardware) + ": this qpn8 is built without CUDA and cannot measure it");
}

}  // namespace

std::unique_ptr<MachineProbe> make_gpu_probe(const Hardware& hardware) { refuse(hardware); }

std::int64_t gpu_cache_bytes(const Hardware& hardware) { refuse(hardware); }

}  // namespace qpn8
