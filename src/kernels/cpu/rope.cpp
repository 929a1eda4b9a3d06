#include "kernels/cpu/rope.hpp"

#include <cmath>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

void rotate_halves(float* head, const float* cosines, const float* sines, std::size_t pairs) {
  for_vectors(pairs, [&](auto d, std::size_t i) HWY_ATTR {
    const auto a = hn::LoadU(d, head + i);
    const auto b = hn::LoadU(d, head + pairs + i);
    const auto c = hn::LoadU(d, cosines + i);
    const auto s = hn::LoadU(d, sines + i);
    hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, head + i);
    hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, head + pairs + i);
  });
}

void rotate_interleaved(float* head, const float* cosines, const float* sines, std::size_t pairs) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= pairs; i += hn::Lanes(d)) {
    V a;
    V b;
    hn::LoadInterleaved2(d, head + 2 * i, a, b);
    const V c = hn::LoadU(d, cosines + i);
    const V s = hn::LoadU(d, sines + i);
    hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d, head + 2 * i);
  }
  for (; i < pairs; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = a * cosines[i] - b * sines[i];
    head[2 * i + 1] = b * cosines[i] + a * sines[i];
  }
}

template <void (*kRotate)(float*, const float*, const float*, std::size_t)>
void rotate_rows(MatrixView<float> x, std::int64_t head_dim, MatrixView<const float> angles) {
  const std::int64_t pairs = angles.cols / 2;
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const float* cosines = angles.row(t).data();
    for (std::int64_t first = 0; first < x.cols; first += head_dim) {
      kRotate(x.row(t).data() + first, cosines, cosines + pairs, static_cast<std::size_t>(pairs));
    }
  }
}

void rope_halves_kernel(MatrixView<float> x, std::int64_t head_dim, MatrixView<const float> angles) {
  rotate_rows<rotate_halves>(x, head_dim, angles);
}

void rope_interleaved_kernel(MatrixView<float> x, std::int64_t head_dim, MatrixView<const float> angles) {
  rotate_rows<rotate_interleaved>(x, head_dim, angles);
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(rope_halves_kernel);
HWY_EXPORT(rope_interleaved_kernel);

void rope_angles(std::span<const std::int32_t> positions, std::span<const float> frequencies, float scale,
                 MatrixView<float> angles, ThreadTeam& team) {
  const std::size_t pairs = frequencies.size();
  // A sine costs some twenty times an addition.
  team.for_ranges(angles.rows, row_grain(20 * angles.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::span<float> row = angles.row(t);
      const auto position = static_cast<float>(positions[static_cast<std::size_t>(t)]);
      for (std::size_t i = 0; i < pairs; ++i) {
        const double angle = position * frequencies[i];
        row[i] = static_cast<float>(std::cos(angle)) * scale;
        row[pairs + i] = static_cast<float>(std::sin(angle)) * scale;
      }
    }
  });
}

void rope_halves(MatrixView<float> x, std::int64_t head_dim, MatrixView<const float> angles, ThreadTeam& team) {
  check(x.cols % head_dim == 0 && angles.cols <= head_dim, "rows are whole heads");
  team.for_ranges(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t count = end - begin;
    HWY_DYNAMIC_DISPATCH(rope_halves_kernel)(x.row_range(begin, count), head_dim, angles.row_range(begin, count));
  });
}

void rope_interleaved(MatrixView<float> x, std::int64_t head_dim, MatrixView<const float> angles, ThreadTeam& team) {
  check(x.cols % head_dim == 0 && angles.cols <= head_dim, "rows are whole heads");
  team.for_ranges(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t count = end - begin;
    HWY_DYNAMIC_DISPATCH(rope_interleaved_kernel)(x.row_range(begin, count), head_dim, angles.row_range(begin, count));
  });
}

void rope_tails(MatrixView<float> x, std::int64_t head_dim, MatrixView<const float> angles, ThreadTeam& team) {
  check(x.cols % head_dim == 0 && angles.cols <= head_dim, "rows are whole heads");
  const std::int64_t untouched = head_dim - angles.cols;
  const MatrixView<float> tails = x.col_range(untouched, x.cols - untouched);
  team.for_ranges(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t count = end - begin;
    HWY_DYNAMIC_DISPATCH(rope_interleaved_kernel)
    (tails.row_range(begin, count), head_dim, angles.row_range(begin, count));
  });
}

void rope_reference(MatrixView<double> x, std::int64_t head_dim, MatrixView<const float> angles, std::int64_t apart) {
  const std::int64_t pairs = angles.cols / 2;
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::int64_t head = 0; head < x.cols / head_dim; ++head) {
      for (std::int64_t i = 0; i < pairs; ++i) {
        double* pair = x.row(t).data() + head * head_dim + (apart == 1 ? 2 * i : i);
        const double cosine = angles.row(t)[static_cast<std::size_t>(i)];
        const double sine = angles.row(t)[static_cast<std::size_t>(pairs + i)];
        const double a = pair[0];
        const double b = pair[apart];
        pair[0] = a * cosine - b * sine;
        pair[apart] = b * cosine + a * sine;
      }
    }
  }
}

}  // namespace qpn8::cpu
#endif
