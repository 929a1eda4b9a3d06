#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qpn8/matrix.hpp"

namespace qpn8 {

/// What the inputs of an audited product are like.
enum class ActivationPattern : std::uint8_t {
  gaussian,        ///< unit Gaussian
  small_gaussian,  ///< unit Gaussian times 0.01: small outputs, some of them subnormal FP16 numbers
  outliers,        ///< Student's t with three degrees of freedom, and one channel in 64 thirty times as large
  captured,        ///< what the model feeds the projection in a forward pass
};

inline constexpr std::array kSyntheticPatterns = {ActivationPattern::gaussian, ActivationPattern::small_gaussian,
                                                  ActivationPattern::outliers};

/// "gaussian", "gaussian_0.01", "outliers", "captured".
std::string_view to_string(ActivationPattern pattern);

/// rows x k inputs of a synthetic pattern. FP16 numbers, so that every device is given the same. The same for the same
/// seed.
Matrix<float> synthetic_activations(ActivationPattern pattern, std::int64_t rows, std::int64_t k, std::uint64_t seed);

}  // namespace qpn8
