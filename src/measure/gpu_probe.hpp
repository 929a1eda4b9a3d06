#pragma once

#include <cstdint>
#include <memory>

#include "measure/machine_probe.hpp"

namespace qpn8 {

/// The probe of the visible GPU: reads timed on the device, and for operations a second those of a large FP16 product
/// by cuBLAS, which is what a prompt's products are. Error::unsupported naming `hardware` if that is no GPU at hand.
std::unique_ptr<MachineProbe> make_gpu_probe(const Hardware& hardware);

/// Bytes of the L2 of the visible GPU; Error::unsupported likewise.
std::int64_t gpu_cache_bytes(const Hardware& hardware);

}  // namespace qpn8
