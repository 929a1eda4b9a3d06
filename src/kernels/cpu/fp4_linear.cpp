#include "kernels/cpu/fp4_linear.hpp"

#include <cmath>
#include <span>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"
#include "quant/e2m1.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fp4_linear.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

// Exponent and mantissa shifted into FP32 position read as value / 2^126 (the exponent biases differ by 126). Exact for
// the subnormal too, which then is one of FP32.
template <class D, class U>
HWY_INLINE hn::Vec<D> widen_codes(D d, U u, hn::Vec<U> codes, hn::Vec<D> scale) {
  const auto magnitude = hn::ShiftLeft<22>(hn::And(codes, hn::Set(u, 7U)));
  const auto sign = hn::ShiftLeft<28>(hn::And(codes, hn::Set(u, 8U)));
  const auto value = hn::BitCast(d, hn::Or(magnitude, sign));
  return hn::Mul(hn::Mul(value, hn::Set(d, 0x1p126F)), scale);
}

/// The kFp4Group inputs of one scale.
void widen_group(const std::uint8_t* codes, float scale, float* to) {
  constexpr std::size_t kBytes = kFp4Group / 2;
  const hn::CappedTag<float, kBytes> d;
  const hn::RebindToUnsigned<decltype(d)> u;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  for (std::size_t i = 0; i < kBytes; i += hn::Lanes(d)) {
    const auto pairs = hn::PromoteTo(u, hn::LoadU(bytes, codes + i));
    const auto even = widen_codes(d, u, pairs, hn::Set(d, scale));
    const auto odd = widen_codes(d, u, hn::ShiftRight<4>(pairs), hn::Set(d, scale));
    hn::StoreInterleaved2(even, odd, d, to + 2 * i);
  }
}

void fp4_row_kernel(const std::uint8_t* codes, const std::uint8_t* scales, MatrixView<const float> x,
                    std::span<float> row, float* y, std::int64_t stride) {
  for (std::size_t i = 0; i < row.size(); i += kFp4Group) {
    widen_group(codes + i / 2, std::ldexp(1.0F, scales[i / kFp4Group] - 127), row.data() + i);
  }
  for (std::int64_t t = 0; t < x.rows; ++t) y[t * stride] = dot(row.data(), x.row(t).data(), row.size());
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(fp4_row_kernel);

void fp4_linear(const Fp4WeightView& weight, MatrixView<const float> x, MatrixView<float> y, MatrixView<float> scratch,
                ThreadTeam& team) {
  check(weight.k % kFp4Group == 0 && x.cols == weight.k && y.cols == weight.n && y.rows == x.rows &&
            scratch.rows >= team.size() && scratch.cols == weight.k,
        "shapes of an FP4 product agree");
  const std::int64_t members = worthwhile_members(weight.n, (1 + x.rows) * weight.k, team.size());
  for_members(team, members, weight.n, [&](int member, std::int64_t begin, std::int64_t end) {
    const std::span<float> row = scratch.row(member);
    for (std::int64_t i = begin; i < end; ++i) {
      HWY_DYNAMIC_DISPATCH(fp4_row_kernel)
      (weight.codes + i * weight.k / 2, weight.scales + i * weight.k / kFp4Group, x, row, y.data + i, y.stride);
    }
  });
}

void fp4_linear_reference(const Fp4WeightView& weight, MatrixView<const float> x, MatrixView<double> y) {
  for (std::int64_t i = 0; i < weight.n; ++i) {
    const std::uint8_t* codes = weight.codes + i * weight.k / 2;
    const std::uint8_t* scales = weight.scales + i * weight.k / kFp4Group;
    for (std::int64_t t = 0; t < x.rows; ++t) {
      double sum = 0;
      for (std::int64_t j = 0; j < weight.k; ++j) {
        sum += std::ldexp(static_cast<double>(decode_e2m1(e2m1_at(codes, j))), scales[j / kFp4Group] - 127) *
               x.row(t)[static_cast<std::size_t>(j)];
      }
      y.row(t)[static_cast<std::size_t>(i)] = sum;
    }
  }
}

}  // namespace qpn8::cpu
#endif
