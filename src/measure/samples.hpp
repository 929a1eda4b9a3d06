#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "evidence/statistics.hpp"

namespace qpn8 {

inline constexpr double kGb = 1e9;  ///< bytes

/// What one candidate of a comparison measured, a number a round.
using Samples = std::vector<double>;

/// How often each candidate is measured, and how often before that counts.
struct Repeats {
  int warmups = 1;
  int counted = 7;
};

/// Told of samples taken so far, of how many. What it throws ends the measurement.
using SampleObserver = std::function<void(std::int64_t done, std::int64_t total)>;

/// Measures the candidates in turn, one sample each a round, so that a machine that is slow for a while is slow for all
/// of them; every second round goes backwards, so that none always follows the same other one. Returns the samples of
/// the counted rounds, [candidate][round].
std::vector<Samples> measure_alternating(std::span<const std::function<double()>> candidates, const Repeats& repeats,
                                         const std::function<void()>& on_sample = nullptr);

/// a[i] / b[i]: of samples of the same rounds, whose ratio a slow round does not change.
Samples ratios(std::span<const double> a, std::span<const double> b);

/// factor / samples[i].
Samples rates(double factor, std::span<const double> samples);

/// Seconds that `body` takes.
double seconds_of(const std::function<void()>& body);

}  // namespace qpn8
