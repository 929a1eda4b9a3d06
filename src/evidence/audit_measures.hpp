#pragma once

#include <cstdint>

#include "qpn8/matrix.hpp"

namespace qpn8 {

/// How far results are from a reference.
struct Measures {
  std::int64_t outputs = 0;
  double exact_fp16_fraction = 1.0;  ///< outputs that are the reference's FP16 number once both are rounded to FP16
  double relative_l2 = 0.0;          ///< ||result - reference|| / ||reference||, as the device delivers them
  double relative_l2_fp16 = 0.0;  ///< the same once both are rounded to FP16: a rounding that flips counts as one ulp
  std::int64_t max_ulp = 0;       ///< most FP16 numbers between a result and its reference
  bool finite = true;             ///< no result is NaN or beyond FP16 where its reference is not
};

/// What a schedule has to hold against the dense fallback: the published bounds of the schedules that were retained.
struct AuditBounds {
  double exact_fp16_fraction = 0.99707;  ///< at least
  double relative_l2 = 1.641e-5;         ///< at most

  bool hold(const Measures& measures) const {
    return measures.finite && measures.exact_fp16_fraction >= exact_fp16_fraction &&
           measures.relative_l2 <= relative_l2;
  }
};

/// Of two matrices of the same shape.
Measures measure(MatrixView<const float> result, MatrixView<const double> reference);
Measures measure(MatrixView<const float> result, MatrixView<const float> reference);

}  // namespace qpn8
