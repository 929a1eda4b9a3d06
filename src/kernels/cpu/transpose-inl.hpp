// Transposing stored weights into FP32; included once for every instruction set (see
// hwy/foreach_target.h), hence the toggled include guard.

#if defined(QPN8_KERNELS_CPU_TRANSPOSE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef QPN8_KERNELS_CPU_TRANSPOSE_INL_HPP
#undef QPN8_KERNELS_CPU_TRANSPOSE_INL_HPP
#else
#define QPN8_KERNELS_CPU_TRANSPOSE_INL_HPP
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "quant/load_float-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

namespace load = simd::HWY_NAMESPACE;

namespace hn = hwy::HWY_NAMESPACE;

/// out[c * out_stride + r] = from[r * stride + c] for 4 rows and 4 columns.
template <class T>
HWY_INLINE void transpose_4x4(const T* from, std::int64_t stride, float* out, std::int64_t out_stride) {
  const hn::CappedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> wide;
  const auto row0 = load::load_as_float(d, from);
  const auto row1 = load::load_as_float(d, from + stride);
  const auto row2 = load::load_as_float(d, from + 2 * stride);
  const auto row3 = load::load_as_float(d, from + 3 * stride);
  // Pairs of rows by element, then pairs of pairs.
  const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, row0, row1));
  const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, row0, row1));
  const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, row2, row3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, out + out_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, out + 2 * out_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, out + 3 * out_stride);
}

/// out[c * out_stride + r] = from[r * stride + c] for any number of rows and columns.
template <class T>
void transpose(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t cols, float* out,
               std::int64_t out_stride) {
  const std::int64_t whole_rows = rows / 4 * 4;
  const std::int64_t whole_cols = cols / 4 * 4;
  for (std::int64_t r = 0; r < rows; ++r) {
    const bool in_blocks = r < whole_rows;
    if (in_blocks && r % 4 == 0) {
      for (std::int64_t c = 0; c < whole_cols; c += 4) {
        transpose_4x4(from + r * stride + c, stride, out + c * out_stride + r, out_stride);
      }
    }
    for (std::int64_t c = in_blocks ? whole_cols : 0; c < cols; ++c) {
      out[c * out_stride + r] = load::scalar_as_float(from[r * stride + c]);
    }
  }
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QPN8_KERNELS_CPU_TRANSPOSE_INL_HPP
