#pragma once

#include <cstdint>
#include <memory>

#include "qpn8/contract.hpp"

namespace qpn8 {

/// What the machine itself can do, measured beside what is compared with it.
class MachineProbe {
 public:
  MachineProbe() = default;
  virtual ~MachineProbe() = default;
  MachineProbe(const MachineProbe&) = delete;
  MachineProbe& operator=(const MachineProbe&) = delete;

  /// Bytes a second of one plain read of `bytes` bytes by all threads. The first call with more bytes than all before
  /// it allocates them.
  virtual double read_bytes_per_s(std::int64_t bytes) = 0;

  /// Operations a second, two a multiply-add: on a CPU FP32 in registers on all threads, on a GPU those of the largest
  /// FP16 product that a library makes.
  virtual double flop_per_s() = 0;
};

/// The probe of this hardware with so many threads (0: one a processor). Error::unsupported where there is none.
std::unique_ptr<MachineProbe> make_probe(const Hardware& hardware, int threads);

/// Bytes of the largest cache of that hardware; errors as make_probe().
std::int64_t cache_bytes(const Hardware& hardware);

/// Bytes of the largest cache that the processors have, or 32 MiB where the system does not tell.
std::int64_t last_level_cache_bytes();

}  // namespace qpn8
