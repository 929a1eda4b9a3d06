#include "measure/machine_probe.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "backend/cpu_backend.hpp"
#include "base/buffer.hpp"
#include "kernels/cpu/probe.hpp"
#include "measure/gpu_probe.hpp"
#include "measure/samples.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8 {
namespace {

class CpuProbe : public MachineProbe {
 public:
  explicit CpuProbe(int threads) : team_(cpu_threads(threads)) {}

  double read_bytes_per_s(std::int64_t bytes) override {
    const auto size = static_cast<std::size_t>(bytes);
    if (memory_.size() < size) {
      memory_ = Buffer(size);
      // Memory that was never written is one page of zeros, which is read from a cache.
      std::memset(memory_.data(), 0x5a, size);
    }
    const double seconds = seconds_of([&] { sink_ = sink_ + cpu::read_all(memory_.bytes().first(size), team_); });
    return static_cast<double>(bytes) / seconds;
  }

  double flop_per_s() override {
    constexpr std::int64_t kRounds = std::int64_t{1} << 21;  // some 10 ms
    double operations = 0;
    float value = 0;
    const double seconds = seconds_of([&] { operations = cpu::multiply_add_rounds(kRounds, team_, value); });
    return operations / seconds;
  }

 private:
  ThreadTeam team_;
  Buffer memory_;
  std::uint64_t sink_ = 0;
};

}  // namespace

std::unique_ptr<MachineProbe> make_probe(const Hardware& hardware, int threads) {
  if (hardware.kind == HardwareKind::cpu) return std::make_unique<CpuProbe>(threads);
  return make_gpu_probe(hardware);
}

std::int64_t last_level_cache_bytes() {
  std::int64_t largest = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  for (const int level : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE}) {
    largest = std::max<std::int64_t>(largest, sysconf(level));
  }
#endif
  return largest > 0 ? largest : std::int64_t{32} << 20;
}

std::int64_t cache_bytes(const Hardware& hardware) {
  return hardware.kind == HardwareKind::cpu ? last_level_cache_bytes() : gpu_cache_bytes(hardware);
}

}  // namespace qpn8
