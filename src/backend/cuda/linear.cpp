#include "backend/cuda/linear.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/cuda/dequantise.hpp"
#include "kernels/cuda/qpn8_linear.hpp"
#include "kernels/cuda/rows.hpp"
#include "qpn8/schedule.hpp"

namespace qpn8::cuda {
namespace {

/// Rows of x that one product over the workspace takes: enough for cuBLAS to be limited by arithmetic.
constexpr std::int64_t kWorkspaceRows = 512;

/// Bytes of workspace for one channel: its weights, and its sums for every row.
std::int64_t channel_bytes(std::int64_t k) {
  return k * static_cast<std::int64_t>(sizeof(__half)) + kWorkspaceRows * static_cast<std::int64_t>(sizeof(float));
}

ProductOutput rows_of(const ProductOutput& y, std::int64_t first_row) {
  const std::int64_t offset = first_row * y.stride * static_cast<std::int64_t>(size_of(y.dtype));
  return {static_cast<std::byte*>(y.data) + offset, y.dtype, y.n, y.stride};
}

}  // namespace

CudaLinear::CudaLinear(const std::vector<float>& bias) : bias_(bias.size() * sizeof(float), "a bias") {
  if (!bias.empty()) bias_.fill(std::as_bytes(std::span(bias)));
}

void CudaLinear::apply(MatrixView<const __half> x, const ProductOutput& y, const ProductContext& context) const {
  check(x.cols == k() && y.n == n(), "operands of a product fit");
  if (x.rows == 0) return;
  if (x.rows <= kMaxPackedRows) {
    multiply_few({.data = x.data, .stride = x.stride, .rows = static_cast<int>(x.rows)}, y, context);
  } else {
    multiply_many(x, y, context);
  }
}

void CudaLinear::apply_few(const ProductInput& x, const ProductOutput& y, const ProductContext& context) const {
  check((y.end == ProductEnd::gate ? 2 * y.n : y.n) == n(), "operands of a product fit");
  multiply_few(x, y, context);
}

void DenseLinear::multiply_few(const ProductInput& x, const ProductOutput& y, const ProductContext& context) const {
  dense_linear(weight_, x, bias(), y, context.stream);
}

void DenseLinear::multiply_many(MatrixView<const __half> x, const ProductOutput& y,
                                const ProductContext& context) const {
  if (bias() != nullptr && y.dtype == DType::f16) {
    fill_rows(bias(), MatrixView<__half>(static_cast<__half*>(y.data), x.rows, y.n, y.stride), context.stream);
  } else if (bias() != nullptr) {
    fill_rows(bias(), MatrixView<float>(static_cast<float*>(y.data), x.rows, y.n, y.stride), context.stream);
  }
  context.gemm.multiply(weight_, x, bias() != nullptr, y);
}

std::size_t PackedLinear::least_workspace_bytes(std::int64_t k) {
  return static_cast<std::size_t>(kFragmentChannels * channel_bytes(k));
}

void PackedLinear::multiply_few(const ProductInput& x, const ProductOutput& y, const ProductContext& context) const {
  qpn8_linear(weight_, x, bias(), y, context.stream.handle);
}

void PackedLinear::multiply_many(MatrixView<const __half> x, const ProductOutput& y,
                                 const ProductContext& context) const {
  const auto capacity = static_cast<std::int64_t>(context.workspace.size());
  const std::int64_t step =
      std::min(capacity / channel_bytes(weight_.k), weight_.n) / kFragmentChannels * kFragmentChannels;
  check(step > 0, "loading has checked the workspace");
  auto* weights = context.workspace.as<__half>();
  auto* sums = reinterpret_cast<float*>(weights + step * weight_.k);
  const bool channel_scaled = weight_.scale_kind == ScaleKind::channel;
  for (std::int64_t first = 0; first < n_; first += step) {
    const std::int64_t stored = std::min(step, weight_.n - first);
    const std::int64_t cols = std::min(stored, n_ - first);
    const DenseWeight part = {weights, stored, weight_.k};
    dequantise(weight_, first, {weights, stored, weight_.k}, context.stream);
    for (std::int64_t row = 0; row < x.rows; row += kWorkspaceRows) {
      const std::int64_t rows = std::min(kWorkspaceRows, x.rows - row);
      context.gemm.multiply(part, x.row_range(row, rows), false, {sums, DType::f32, stored, stored});
      const StoredColumns columns = {first, cols, weight_.paired_half};
      scale_columns({sums, rows, stored}, columns, channel_scaled ? weight_.scales : nullptr, bias(), rows_of(y, row),
                    context.stream);
    }
  }
}

}  // namespace qpn8::cuda
