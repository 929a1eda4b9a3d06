// A panel of the weight as FP32 for the GEMM; included once for every instruction set (see hwy/foreach_target.h), hence
// the toggled include guard.

#if defined(QPN8_KERNELS_CPU_GEMM_PANEL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef QPN8_KERNELS_CPU_GEMM_PANEL_INL_HPP
#undef QPN8_KERNELS_CPU_GEMM_PANEL_INL_HPP
#else
#define QPN8_KERNELS_CPU_GEMM_PANEL_INL_HPP
#endif

#include <algorithm>

#include "hwy/cache_control.h"
#include "kernels/cpu/dense_linear.hpp"
#include "kernels/cpu/qpn8_decode-inl.hpp"
#include "kernels/cpu/transpose-inl.hpp"
#include "qpn8/pack.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

/// panel[(i - begin) * 32 + c] = weight(first + c, i) for i in [begin, end) and 32 channels, zeros beyond the last one.
template <class T>
void fill_dense_panel(const DenseWeightView& weight, std::int64_t first, std::int64_t begin, std::int64_t end,
                      float* panel) {
  const std::int64_t channels = std::min(kTileColumns, weight.n - first);
  if (channels < kTileColumns) std::fill(panel, panel + (end - begin) * kTileColumns, 0.0F);
  const T* from = static_cast<const T*>(weight.data) + first * weight.k + begin;
  transpose(from, weight.k, channels, end - begin, panel, kTileColumns);
}

/// Asks for the stored weights of a panel, whose rows are too short a run for the processor to foresee.
inline void prefetch_panel(const DenseWeightView& weight, std::int64_t first, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kLine = 64;
  const auto size = static_cast<std::int64_t>(size_of(weight.dtype));
  const auto* data = static_cast<const std::uint8_t*>(weight.data);
  for (std::int64_t row = first; row < std::min(first + kTileColumns, weight.n); ++row) {
    for (std::int64_t at = begin * size; at < end * size; at += kLine) {
      hwy::Prefetch(data + row * weight.k * size + at);
    }
  }
}

inline void fill_panel(const DenseWeightView& weight, std::int64_t first, std::int64_t begin, std::int64_t end,
                       float* panel) {
  switch (weight.dtype) {
    case DType::f16:
      return fill_dense_panel<Half>(weight, first, begin, end, panel);
    case DType::bf16:
      return fill_dense_panel<BFloat16>(weight, first, begin, end, panel);
    default:
      return fill_dense_panel<float>(weight, first, begin, end, panel);
  }
}

/// The same for a packed weight, whose tile is as wide as a panel: dequantised, scales included. [begin, end) lies
/// within one block of k if the scales are by block.
inline void fill_packed_part(const PackedWeight& weight, std::int64_t first, std::int64_t begin, std::int64_t end,
                             float* panel) {
  const FloatTag f;
  const LaneTag u;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  const std::uint8_t* codes = weight.code_bytes().data() + first * weight.k;
  const FloatVec power = hn::Set(f, 256.0F);
  for (std::int64_t c = 0; c < kTileColumns; c += lanes) {
    const FloatVec scale = weight.scale_kind == ScaleKind::channel ? hn::LoadU(f, weight.scales.data() + first + c)
                                                                   : hn::Set(f, scale_at(weight, first + c, begin));
    for (std::int64_t i = begin; i < end; i += 4) {
      FloatVec values[4];
      const std::uint8_t* quad = codes + i * kTileColumns + c * 4;
      decode_quad<Codes::any>(hn::LoadU(u, reinterpret_cast<const std::uint32_t*>(quad)), values);
      for (int j = 0; j < 4; ++j) {
        hn::StoreU(hn::Mul(hn::Mul(values[j], power), scale), f, panel + (i - begin + j) * kTileColumns + c);
      }
    }
  }
}

inline void prefetch_panel(const PackedWeight& weight, std::int64_t first, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kLine = 64;
  const std::uint8_t* codes = weight.code_bytes().data() + first * weight.k;
  for (std::int64_t at = begin * kTileColumns; at < end * kTileColumns; at += kLine) hwy::Prefetch(codes + at);
}

inline void fill_panel(const PackedWeight& weight, std::int64_t first, std::int64_t begin, std::int64_t end,
                       float* panel) {
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t part_end = std::min(end, (i / weight.block_k + 1) * weight.block_k);
    fill_packed_part(weight, first, i, part_end, panel + (i - begin) * kTileColumns);
    i = part_end;
  }
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // QPN8_KERNELS_CPU_GEMM_PANEL_INL_HPP
