#include "kernels/cpu/gemm.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/divide_up.hpp"
#include "kernels/cpu/gemm_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/gemm_panel-inl.hpp"
#include "kernels/cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

// Two vectors of channels by 12 rows fill 24 of 32 registers with sums, 6 rows 12 of 16; the rest holds the panel's two
// vectors and a broadcast input.
constexpr int kStripRows = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 12 : 6;
static_assert(kStripRows <= kMaxStripRows);

std::int64_t strip_rows() { return kStripRows; }

/// Asks for the lines of c that a strip will update when it is done: rows of y often lie a power of two apart, compete
/// for the same few sets of the caches and have been evicted since the last block of k.
HWY_INLINE void prefetch_target(const float* c, std::int64_t stride, int rows) {
  constexpr std::int64_t kLineFloats = 16;
  for (int r = 0; r < rows; ++r) {
    for (std::int64_t column = 0; column < kTileColumns; column += kLineFloats) {
      hwy::Prefetch(c + r * stride + column);
    }
  }
}

/// c[r][0 .. 32) (+)= rows[.][r] * panel, summed over `inputs`; a first block overwrites c.
template <int kRows>
void multiply_strip(const float* rows, const float* panel, std::int64_t inputs, MatrixView<float> c, bool first) {
  const FloatTag f;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(f));
  prefetch_target(c.data, c.stride, kRows);
  for (std::int64_t column = 0; column < kTileColumns; column += 2 * lanes) {
    FloatVec sums[kRows][2];
    for (auto& row : sums) row[0] = row[1] = hn::Zero(f);
    const float* inputs_of_rows = rows;
    const float* weights = panel + column;
    for (std::int64_t i = 0; i < inputs; ++i) {
      const FloatVec left = hn::LoadU(f, weights);
      const FloatVec right = hn::LoadU(f, weights + lanes);
      for (int r = 0; r < kRows; ++r) {
        const FloatVec input = hn::Set(f, inputs_of_rows[r]);
        sums[r][0] = hn::MulAdd(input, left, sums[r][0]);
        sums[r][1] = hn::MulAdd(input, right, sums[r][1]);
      }
      inputs_of_rows += kRows;
      weights += kTileColumns;
    }
    for (int r = 0; r < kRows; ++r) {
      for (int half = 0; half < 2; ++half) {
        float* out = c.data + r * c.stride + column + half * lanes;
        const FloatVec sum = first ? sums[r][half] : hn::Add(hn::LoadU(f, out), sums[r][half]);
        hn::StoreU(sum, f, out);
      }
    }
  }
}

using StripKernel = void (*)(const float*, const float*, std::int64_t, MatrixView<float>, bool);

template <int... kRows>
constexpr std::array<StripKernel, sizeof...(kRows)> strip_kernels(std::integer_sequence<int, kRows...>) {
  return {&multiply_strip<kRows + 1>...};
}

/// One strip against one panel whose first channel is `channel`; the last panel may hang over the edge of y.
void multiply_panel(const float* rows, std::int64_t row_count, const float* panel, std::int64_t inputs,
                    MatrixView<float> y, std::int64_t channel, bool first) {
  static constexpr auto kKernels = strip_kernels(std::make_integer_sequence<int, kStripRows>());
  const StripKernel kernel = kKernels[static_cast<std::size_t>(row_count - 1)];
  const std::int64_t channels = std::min(kTileColumns, y.cols - channel);
  const MatrixView<float> target = y.col_range(channel, channels);
  if (channels == kTileColumns) return kernel(rows, panel, inputs, target, first);
  float whole[kMaxStripRows * kTileColumns];
  kernel(rows, panel, inputs, MatrixView<float>(whole, row_count, kTileColumns), true);
  for (std::int64_t r = 0; r < row_count; ++r) {
    float* out = target.data + r * target.stride;
    const float* sums = whole + r * kTileColumns;
    for (std::int64_t c = 0; c < channels; ++c) out[c] = first ? sums[c] : out[c] + sums[c];
  }
}

/// The panels [begin, end) of y; `panels` is this thread's memory for kPanelsAtOnce of them.
template <class Weight>
void run_panels(const Weight& weight, const GemmRows& rows, MatrixView<float> y, std::int64_t begin, std::int64_t end,
                float* panels) {
  for (std::int64_t group = begin; group < end; group += kPanelsAtOnce) {
    const std::int64_t group_end = std::min(end, group + kPanelsAtOnce);
    for (std::int64_t input = 0; input < rows.k; input += kPanelInputs) {
      const std::int64_t inputs = std::min(kPanelInputs, rows.k - input);
      for (std::int64_t panel = group; panel < group_end; ++panel) {
        float* filled = panels + (panel - group) * kPanelFloats;
        fill_panel(weight, panel * kTileColumns, input, input + inputs, filled);
        // The next panel's weights arrive while this one is multiplied.
        if (panel + 1 < group_end) prefetch_panel(weight, (panel + 1) * kTileColumns, input, input + inputs);
        for (std::int64_t strip = 0; strip < rows.strips; ++strip) {
          const std::int64_t first_row = rows.first_row(strip);
          const std::int64_t row_count = rows.first_row(strip + 1) - first_row;
          multiply_panel(rows.block(input, inputs, strip), row_count, filled, inputs, y.row_range(first_row, row_count),
                         panel * kTileColumns, input == 0);
        }
      }
    }
  }
}

void run_dense_panels(const DenseWeightView& weight, const GemmRows& rows, MatrixView<float> y, std::int64_t begin,
                      std::int64_t end, float* panels) {
  run_panels(weight, rows, y, begin, end, panels);
}

void run_packed_panels(const PackedWeight& weight, const GemmRows& rows, MatrixView<float> y, std::int64_t begin,
                       std::int64_t end, float* panels) {
  run_panels(weight, rows, y, begin, end, panels);
}

/// Rearranges the strips [begin, end).
void pack_strips(MatrixView<const float> x, const GemmRows& packed, std::int64_t begin, std::int64_t end) {
  for (std::int64_t strip = begin; strip < end; ++strip) {
    const std::int64_t first = packed.first_row(strip);
    const std::int64_t count = packed.first_row(strip + 1) - first;
    for (std::int64_t input = 0; input < packed.k; input += kPanelInputs) {
      const std::int64_t inputs = std::min(kPanelInputs, packed.k - input);
      transpose(x.data + first * x.stride + input, x.stride, count, inputs,
                packed.data + input * packed.rows + first * inputs, count);
    }
  }
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {
namespace {

HWY_EXPORT(strip_rows);
HWY_EXPORT(pack_strips);
HWY_EXPORT(run_dense_panels);
HWY_EXPORT(run_packed_panels);

void run_panels(const DenseWeightView& weight, const GemmRows& rows, MatrixView<float> y, std::int64_t begin,
                std::int64_t end, float* panels) {
  HWY_DYNAMIC_DISPATCH(run_dense_panels)(weight, rows, y, begin, end, panels);
}

void run_panels(const PackedWeight& weight, const GemmRows& rows, MatrixView<float> y, std::int64_t begin,
                std::int64_t end, float* panels) {
  HWY_DYNAMIC_DISPATCH(run_packed_panels)(weight, rows, y, begin, end, panels);
}

void fill_zero(MatrixView<float> y) {
  for (std::int64_t r = 0; r < y.rows; ++r) std::fill_n(y.data + r * y.stride, y.cols, 0.0F);
}

template <class Weight>
void multiply_blocked(const Weight& weight, MatrixView<const float> x, MatrixView<float> y, Workspace& workspace,
                      ThreadTeam& team) {
  const std::int64_t k = weight.k;
  if (k == 0) return fill_zero(y);
  const std::int64_t thread_floats = kPanelsAtOnce * kPanelFloats;
  workspace.claim(gemm_workspace_bytes(k, team.size()));
  const std::span<std::byte> memory = workspace.claim(workspace.capacity());
  auto* panels = reinterpret_cast<float*>(memory.data());
  float* row_memory = panels + thread_floats * team.size();
  const auto row_floats = static_cast<std::int64_t>(memory.size() / sizeof(float)) - thread_floats * team.size();
  const std::int64_t passes = divide_up(x.rows, row_floats / k);
  const std::int64_t panel_count = divide_up(y.cols, kTileColumns);
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    const std::int64_t first = x.rows * pass / passes;
    const std::int64_t count = x.rows * (pass + 1) / passes - first;
    const GemmRows rows{row_memory, count, k, divide_up(count, HWY_DYNAMIC_DISPATCH(strip_rows)())};
    team.for_ranges(rows.strips, 1, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(pack_strips)(x.row_range(first, count), rows, begin, end);
    });
    team.run([&](int member) {
      run_panels(weight, rows, y.row_range(first, count), panel_count * member / team.size(),
                 panel_count * (member + 1) / team.size(), panels + thread_floats * member);
    });
  }
}

}  // namespace

std::size_t gemm_workspace_bytes(std::int64_t k, int threads) {
  return static_cast<std::size_t>(threads * kPanelsAtOnce * kPanelFloats + kMaxStripRows * k) * sizeof(float);
}

void gemm(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<float> y, Workspace& workspace,
          ThreadTeam& team) {
  multiply_blocked(weight, x, y, workspace, team);
}

void gemm(const PackedWeight& weight, MatrixView<const float> x, MatrixView<float> y, Workspace& workspace,
          ThreadTeam& team) {
  multiply_blocked(weight, x, y, workspace, team);
}

}  // namespace qpn8::cpu
#endif  // HWY_ONCE
