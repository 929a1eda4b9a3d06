#include "backend/cpu/linear.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "kernels/cpu/add_rows.hpp"

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

}  // namespace qpn8::cpu
