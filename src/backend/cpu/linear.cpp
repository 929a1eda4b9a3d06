#include "backend/cpu/linear.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "kernels/cpu/add_rows.hpp"
#include "kernels/cpu/fp4_linear.hpp"

namespace qpn8::cpu {

void CpuLinear::apply(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const {
  check(x.cols == k() && y.cols == n() && x.rows == y.rows, "a product's shapes agree");
  if (x.rows == 0) return;
  multiply_by(x, y, context);
  if (!bias_.empty()) add_bias(bias_, y, context.team);
}

void DenseLinear::multiply_by(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const {
  dense_linear(weight_, x, y, context.workspace, context.team);
}

void PackedLinear::multiply_by(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const {
  if (weight_.n == n_) {
    multiply(weight_, schedule_, x, y, context.workspace, context.team);
    return;
  }
  const MatrixView<float> wide = context.padded.matrix(x.rows, weight_.n);
  multiply(weight_, schedule_, x, wide, context.workspace, context.team);
  for (std::int64_t t = 0; t < y.rows; ++t) std::copy_n(wide.row(t).data(), n_, y.row(t).data());
}

void Fp4Linear::multiply_by(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const {
  const Fp4WeightView view = {.codes = reinterpret_cast<const std::uint8_t*>(codes_.data()),
                              .scales = reinterpret_cast<const std::uint8_t*>(scales_.data()),
                              .n = n_,
                              .k = k_};
  fp4_linear(view, x, y, context.padded.matrix(context.team.size(), k_), context.team);
}

std::int64_t GroupedLinear::bytes() const {
  return std::accumulate(parts_.begin(), parts_.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& part) { return sum + part->bytes(); });
}

void GroupedLinear::multiply_by(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const {
  for (std::int64_t group = 0; group < groups(); ++group) {
    const CpuLinear& part = *parts_[static_cast<std::size_t>(group)];
    part.apply(x.col_range(group * part.k(), part.k()), y.col_range(group * part.n(), part.n()), context);
  }
}

}  // namespace qpn8::cpu
