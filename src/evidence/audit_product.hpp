#pragma once

#include <cstdint>

#include "backend/backend.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8 {

/// A matrix of the device's numbers (F32, F16 or BF16) on the host.
Matrix<float> read_floats(Backend& backend, const Tensor& tensor);

/// Rounds to the tensor's type, F32, F16 or BF16.
void write_floats(Backend& backend, const Tensor& tensor, MatrixView<const float> values);

/// One product with its memory on the device, to be run again and again: a step as a decoder replays it.
class PreparedProduct {
 public:
  /// y in `out`, the backend's activation type or F32.
  PreparedProduct(Backend& backend, const Linear& weight, std::int64_t rows, DType out);

  /// x [rows, k] -> y [rows, n]. The output is NaN before the product, so that what it leaves out shows.
  void run(MatrixView<const float> x, MatrixView<float> y);

  /// The same through Backend::run_step, which a device may record once and repeat. `variant` as there: no other
  /// product of as many rows on this device may use it.
  void replay(int variant, MatrixView<const float> x, MatrixView<float> y);

 private:
  void prepare(MatrixView<const float> x);
  void fetch(MatrixView<float> y);

  Backend& backend_;
  const Linear& weight_;
  OwnedTensor x_;
  OwnedTensor y_;
};

/// The products of all rows of x, m at a time as a step of m tokens has them; x.rows() is a multiple of m.
Matrix<float> product_by_steps(Backend& backend, const Linear& weight, const Matrix<float>& x, std::int64_t m,
                               DType out);

/// The products of all rows of x at once, on the route for many rows: dense, after dequantising where there are codes.
/// Fewer rows than that route begins with are filled up with zeros.
Matrix<float> dense_product(Backend& backend, const Linear& weight, const Matrix<float>& x, DType out);

}  // namespace qpn8
