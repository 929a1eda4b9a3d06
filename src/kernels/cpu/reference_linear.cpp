#include "kernels/cpu/dense_linear.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/linear.hpp"

namespace qpn8 {
namespace {

/// y = x W^T in FP64, in the order of k; weight(row, column) gives an element.
template <class Weight>
void multiply_plainly(const Weight& weight, MatrixView<const float> x, MatrixView<double> y) {
  for (std::int64_t i = 0; i < y.rows; ++i) {
    for (std::int64_t j = 0; j < y.cols; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < x.cols; ++k)
        sum += static_cast<double>(x.row(i)[static_cast<std::size_t>(k)]) * weight(j, k);
      y.row(i)[static_cast<std::size_t>(j)] = sum;
    }
  }
}

}  // namespace

void multiply_reference(const PackedWeight& weight, MatrixView<const float> x, MatrixView<double> y) {
  multiply_plainly(
      [&](std::int64_t row, std::int64_t column) {
        return static_cast<double>(decode_e4m3(code_at(weight, row, column))) * scale_at(weight, row, column);
      },
      x, y);
}

namespace cpu {

namespace {

float weight_at(const DenseWeightView& weight, std::int64_t row, std::int64_t column) {
  const std::int64_t index = row * weight.k + column;
  switch (weight.dtype) {
    case DType::f16:
      return to_float(static_cast<const Half*>(weight.data)[index]);
    case DType::bf16:
      return to_float(static_cast<const BFloat16*>(weight.data)[index]);
    default:
      return static_cast<const float*>(weight.data)[index];
  }
}

}  // namespace

void dense_linear_reference(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<double> y) {
  multiply_plainly([&](std::int64_t row, std::int64_t column) { return weight_at(weight, row, column); }, x, y);
}

}  // namespace cpu
}  // namespace qpn8
