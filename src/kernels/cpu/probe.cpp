#include "kernels/cpu/probe.hpp"

#include <atomic>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/probe.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

std::uint64_t read_part(const std::byte* memory, std::size_t bytes) {
  const hn::ScalableTag<std::uint64_t> d;
  constexpr std::size_t kStreams = 8;
  const std::size_t step = hn::Lanes(d) * sizeof(std::uint64_t);
  hn::Vec<decltype(d)> sums[kStreams];
  for (auto& sum : sums) sum = hn::Zero(d);
  std::size_t at = 0;
  for (; at + kStreams * step <= bytes; at += kStreams * step) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      sums[s] = hn::Xor(sums[s], hn::LoadU(d, reinterpret_cast<const std::uint64_t*>(memory + at + s * step)));
    }
  }
  for (std::size_t s = 1; s < kStreams; ++s) sums[0] = hn::Xor(sums[0], sums[s]);
  std::uint64_t sum = hn::GetLane(hn::SumOfLanes(d, sums[0]));
  for (; at < bytes; ++at) sum += static_cast<std::uint64_t>(memory[at]);
  return sum;
}

/// Enough independent chains to hide a latency of 5 cycles at two operations a cycle.
float multiply_add(std::int64_t rounds, double& operations) {
  const hn::ScalableTag<float> d;
  constexpr int kChains = 12;
  hn::Vec<decltype(d)> sums[kChains];
  for (int c = 0; c < kChains; ++c) sums[c] = hn::Set(d, static_cast<float>(c));
  const auto factor = hn::Set(d, 0.5F);
  const auto term = hn::Set(d, 1.0F);
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (auto& sum : sums) sum = hn::MulAdd(sum, factor, term);
  }
  for (int c = 1; c < kChains; ++c) sums[0] = hn::Add(sums[0], sums[c]);
  operations = 2.0 * kChains * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d));
  return hn::GetLane(hn::SumOfLanes(d, sums[0]));
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {
namespace {
HWY_EXPORT(read_part);
HWY_EXPORT(multiply_add);
}  // namespace

std::uint64_t read_all(std::span<const std::byte> memory, ThreadTeam& team) {
  constexpr std::int64_t kPage = 4096;
  std::atomic<std::uint64_t> sum{0};
  team.for_ranges(static_cast<std::int64_t>(memory.size()), kPage, [&](std::int64_t begin, std::int64_t end) {
    sum += HWY_DYNAMIC_DISPATCH(read_part)(memory.data() + begin, static_cast<std::size_t>(end - begin));
  });
  return sum;
}

double multiply_add_rounds(std::int64_t rounds, ThreadTeam& team, float& sink) {
  std::atomic<double> total{0};
  std::atomic<float> last{0};
  team.run([&](int) {
    double operations = 0;
    last = HWY_DYNAMIC_DISPATCH(multiply_add)(rounds, operations);
    total.fetch_add(operations);
  });
  sink = last;
  return total;
}

}  // namespace qpn8::cpu
#endif  // HWY_ONCE
