#include "measure/samples.hpp"

#include <chrono>

#include "base/check.hpp"

namespace qpn8 {

std::vector<Samples> measure_alternating(std::span<const std::function<double()>> candidates, const Repeats& repeats,
                                         const std::function<void()>& on_sample) {
  std::vector<Samples> samples(candidates.size());
  for (int round = 0; round < repeats.warmups + repeats.counted; ++round) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const std::size_t candidate = round % 2 == 0 ? i : candidates.size() - 1 - i;
      const double value = candidates[candidate]();
      if (round >= repeats.warmups) samples[candidate].push_back(value);
      if (on_sample) on_sample();
    }
  }
  return samples;
}

Samples ratios(std::span<const double> a, std::span<const double> b) {
  check(a.size() == b.size(), "samples of the same rounds");
  Samples result;
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] / b[i]);
  return result;
}

Samples rates(double factor, std::span<const double> samples) {
  Samples result;
  for (const double sample : samples) result.push_back(factor / sample);
  return result;
}

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace qpn8
