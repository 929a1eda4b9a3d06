#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8 {

/// The weight that a projection serves by its plan, made on the host from the checkpoint and from the definitions of
/// the formats: QPN8 of quantised codes or of the stored ones, dense of the stored numbers. Nothing of it went through
/// a packed layout or a kernel, so that a fault of those shows against it.
class ServedWeight {
 public:
  /// Errors as Backend::load_linear has them, which is to be called first: it checks the source.
  explicit ServedWeight(const LinearSource& source);

  std::int64_t n() const { return n_; }
  std::int64_t k() const { return k_; }

  /// Channel `channel`, exact: the product of a code and its scale fits a double.
  void row(std::int64_t channel, std::span<double> weights) const;

 private:
  void append_codes(const WeightPart& part, const Checkpoint& checkpoint);
  void append_quantised(const WeightPart& part);
  void append_fp4(const WeightPart& part, const Checkpoint& checkpoint);
  void append_numbers(const WeightPart& part);
  void append_zeros(std::int64_t rows);

  std::int64_t n_;
  std::int64_t k_;
  std::vector<std::uint8_t> codes_;         ///< [n, k], empty if numbers are served
  std::vector<float> numbers_;              ///< [n, k], empty if codes are served
  std::vector<std::vector<float>> scales_;  ///< with codes: of each channel, one a block of k or one for all
  std::vector<std::int64_t> first_col_;     ///< with codes: of each channel, where in a block its first code lies
};

/// Products in FP64, and what their terms add up to without their signs: the measure of an FP32 sum's rounding.
struct ExactProduct {
  Matrix<double> values;      ///< [rows, n]
  Matrix<double> magnitudes;  ///< sum of |x| |w|
};

/// x [rows, k] times the weight. Parallel over channels; the result does not depend on the team's size.
ExactProduct exact_product(const ServedWeight& weight, const Matrix<float>& x, ThreadTeam& team);

/// What the dense fallback multiplies by, for dense_product().
struct Fallback {
  OwnedTensor dequantised;  ///< F32; empty where the device dequantises by itself
  std::unique_ptr<Linear> weight;
};

/// Where activations are F32, the served weight as numbers. A device of FP16 numbers would have to round those, so
/// there it is the device's own route for many rows, whose codes are exact and whose scales come after the sum.
Fallback load_fallback(const ServedWeight& weight, const LinearSource& source, Backend& backend);

}  // namespace qpn8
