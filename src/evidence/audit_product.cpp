#include "evidence/audit_product.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.hpp"
#include "qpn8/half.hpp"
#include "qpn8/schedule.hpp"

namespace qpn8 {
namespace {

template <class T>
std::vector<T> read_as(Backend& backend, const Tensor& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.rows * tensor.cols));
  backend.read(tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

template <class T, class Convert>
void write_as(Backend& backend, const Tensor& tensor, MatrixView<const float> values, const Convert& convert) {
  std::vector<T> stored;
  stored.reserve(static_cast<std::size_t>(values.rows * values.cols));
  for (std::int64_t i = 0; i < values.rows; ++i) {
    for (const float value : values.row(i)) stored.push_back(convert(value));
  }
  backend.write(tensor, std::as_bytes(std::span<const T>(stored)));
}

}  // namespace

Matrix<float> read_floats(Backend& backend, const Tensor& tensor) {
  Matrix<float> values(tensor.rows, tensor.cols);
  const auto convert = [&](const auto& stored) {
    std::transform(stored.begin(), stored.end(), values.values().begin(), [](auto value) { return to_float(value); });
  };
  switch (tensor.dtype) {
    case DType::f16:
      convert(read_as<Half>(backend, tensor));
      break;
    case DType::bf16:
      convert(read_as<BFloat16>(backend, tensor));
      break;
    default:
      check(tensor.dtype == DType::f32, "activations are F32, F16 or BF16");
      backend.read(tensor, std::as_writable_bytes(values.values()));
  }
  return values;
}

void write_floats(Backend& backend, const Tensor& tensor, MatrixView<const float> values) {
  switch (tensor.dtype) {
    case DType::f16:
      return write_as<Half>(backend, tensor, values, [](float value) { return to_half(value); });
    case DType::bf16:
      return write_as<BFloat16>(backend, tensor, values, [](float value) { return to_bfloat16(value); });
    default:
      check(tensor.dtype == DType::f32, "activations are F32, F16 or BF16");
      return write_as<float>(backend, tensor, values, [](float value) { return value; });
  }
}

PreparedProduct::PreparedProduct(Backend& backend, const Linear& weight, std::int64_t rows, DType out)
    : backend_(backend),
      weight_(weight),
      x_(backend.allocate(backend.activation_type(), rows, weight.k())),
      y_(backend.allocate(out, rows, weight.n())) {}

void PreparedProduct::run(MatrixView<const float> x, MatrixView<float> y) {
  prepare(x);
  backend_.linear(weight_, x_.tensor, y_.tensor);
  fetch(y);
}

void PreparedProduct::replay(int variant, MatrixView<const float> x, MatrixView<float> y) {
  Batch batch;  // a product asks for nothing of it but its size
  batch.rows = x.rows;
  prepare(x);
  backend_.run_step(batch, variant, [&] { backend_.linear(weight_, x_.tensor, y_.tensor); });
  fetch(y);
}

void PreparedProduct::prepare(MatrixView<const float> x) {
  Matrix<float> poison(y_.tensor.rows, y_.tensor.cols);
  std::fill(poison.values().begin(), poison.values().end(), std::nanf(""));
  write_floats(backend_, x_.tensor, x);
  write_floats(backend_, y_.tensor, poison.view());
}

void PreparedProduct::fetch(MatrixView<float> y) {
  const Matrix<float> result = read_floats(backend_, y_.tensor);
  for (std::int64_t i = 0; i < y.rows; ++i) std::copy_n(result.view().row(i).data(), y.cols, y.row(i).data());
}

Matrix<float> product_by_steps(Backend& backend, const Linear& weight, const Matrix<float>& x, std::int64_t m,
                               DType out) {
  check(x.rows() % m == 0, "whole steps");
  PreparedProduct step(backend, weight, m, out);
  Matrix<float> y(x.rows(), weight.n());
  for (std::int64_t first = 0; first < x.rows(); first += m) {
    step.run(x.view().row_range(first, m), y.view().row_range(first, m));
  }
  return y;
}

Matrix<float> dense_product(Backend& backend, const Linear& weight, const Matrix<float>& x, DType out) {
  const std::int64_t rows = std::max<std::int64_t>(x.rows(), kMaxPackedRows + 1);
  Matrix<float> filled_x(rows, x.cols());
  std::copy(x.values().begin(), x.values().end(), filled_x.values().begin());
  Matrix<float> filled_y(rows, weight.n());
  PreparedProduct(backend, weight, rows, out).run(filled_x.view(), filled_y.view());
  Matrix<float> y(x.rows(), weight.n());
  std::copy_n(filled_y.values().begin(), y.values().size(), y.values().begin());
  return y;
}

}  // namespace qpn8
