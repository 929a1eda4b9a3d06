#include "evidence/audit_diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace qpn8 {
namespace {

// An FP32 sum of some ten thousand terms strays by about 3e-6 of their magnitudes, a wrong code by 1e-4 and more.
constexpr double kSumTolerance = 1e-5;
constexpr double kFp16Tolerance = 0x1p-11 + 0x1p-24;
constexpr double kLeastFp16 = 0x1p-24;
constexpr std::size_t kMostNamed = 4;

class Channels {
 public:
  Channels(const Matrix<float>& y, const ExactProduct& exact, bool rounds_to_fp16)
      : y_(y), exact_(exact), rounds_to_fp16_(rounds_to_fp16) {}

  /// Whether channel `channel` of y is channel `of` of the exact product times `factor`.
  bool agree(std::int64_t channel, std::int64_t of, double factor = 1) const {
    for (std::int64_t t = 0; t < y_.rows(); ++t) {
      const double expected = exact_.values(t, of) * factor;
      double tolerance = kSumTolerance * exact_.magnitudes(t, of) * std::max(1.0, std::abs(factor));
      if (rounds_to_fp16_) tolerance += kFp16Tolerance * std::abs(expected) + kLeastFp16;
      // Negated, so that NaN disagrees.
      if (!(std::abs(y_(t, channel) - expected) <= tolerance)) return false;
    }
    return true;
  }

  bool written(std::int64_t channel) const {
    for (std::int64_t t = 0; t < y_.rows(); ++t) {
      if (std::isnan(y_(t, channel))) return false;
    }
    return true;
  }

  /// The factor that all rows share, if they do: that of the row with the largest expectation.
  std::optional<double> factor(std::int64_t channel) const {
    std::int64_t largest = 0;
    for (std::int64_t t = 1; t < y_.rows(); ++t) {
      if (std::abs(exact_.values(t, channel)) > std::abs(exact_.values(largest, channel))) largest = t;
    }
    if (exact_.values(largest, channel) == 0) return std::nullopt;
    const double factor = y_(largest, channel) / exact_.values(largest, channel);
    // One row is always some factor off; it takes two to tell a scale from noise.
    return y_.rows() > 1 && agree(channel, channel, factor) ? std::optional(factor) : std::nullopt;
  }

  double error(std::int64_t channel) const {
    double worst = 0;
    for (std::int64_t t = 0; t < y_.rows(); ++t) {
      worst = std::max(worst, std::abs(y_(t, channel) - exact_.values(t, channel)));
    }
    return worst;
  }

 private:
  const Matrix<float>& y_;
  const ExactProduct& exact_;
  bool rounds_to_fp16_;
};

std::string describe_channel(const Channels& channels, std::int64_t channel, const std::vector<std::int64_t>& bad) {
  if (!channels.written(channel)) return fmt::format("channel {} is not written", channel);
  for (const std::int64_t other : bad) {
    if (other != channel && channels.agree(channel, other) && channels.agree(other, channel)) {
      return fmt::format("channels {} and {} are swapped", std::min(channel, other), std::max(channel, other));
    }
  }
  if (const auto factor = channels.factor(channel)) {
    return fmt::format("channel {} is {:.4g} times what it should be: a wrong scale", channel, *factor);
  }
  return fmt::format("channel {} is off by up to {:.3g}", channel, channels.error(channel));
}

}  // namespace

std::string describe_fault(const Matrix<float>& y, const ExactProduct& exact, bool rounds_to_fp16) {
  const Channels channels(y, exact, rounds_to_fp16);
  std::vector<std::int64_t> bad;
  for (std::int64_t channel = 0; channel < y.cols(); ++channel) {
    if (!channels.agree(channel, channel)) bad.push_back(channel);
  }
  if (bad.empty()) return "";
  std::vector<std::string> faults;
  for (const std::int64_t channel : bad) {
    std::string fault = describe_channel(channels, channel, bad);
    if (std::find(faults.begin(), faults.end(), fault) == faults.end()) faults.push_back(std::move(fault));
    if (faults.size() == kMostNamed) break;
  }
  return fmt::format("{} of {} channels are wrong: {}{}", bad.size(), y.cols(), fmt::join(faults, "; "),
                     bad.size() > kMostNamed ? "; ..." : "");
}

}  // namespace qpn8
