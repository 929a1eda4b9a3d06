#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "qpn8/half.hpp"
#include "support/numbers.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8::test {

/// A checkpoint on disk, made of matrices.
class WeightFile {
 public:
  /// Values rounded to the type: F32, F16 or BF16.
  void add(const std::string& name, DType dtype, const Matrix<float>& values) {
    std::vector<std::byte> bytes(values.values().size() * size_of(dtype));
    for (std::size_t i = 0; i < values.values().size(); ++i) {
      store(values.values()[i], dtype, bytes.data() + i * size_of(dtype));
    }
    add_bytes(name, dtype, values.rows(), values.cols(), std::move(bytes));
  }

  void add_bytes(const std::string& name, DType dtype, std::int64_t rows, std::int64_t cols,
                 std::vector<std::byte> bytes) {
    tensors_.push_back({name, dtype, {rows, cols}, std::move(bytes)});
  }

  const Checkpoint& open() {
    std::vector<TensorToWrite> written;
    for (const Stored& tensor : tensors_) written.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
    write_safetensors(folder_ / "model.safetensors", written);
    checkpoint_.emplace(folder_.path());
    return *checkpoint_;
  }

  const Checkpoint& opened() const { return *checkpoint_; }

  /// The whole tensor as a part of a projection; block scales are the tensor NAME_scale_inv, if there is one.
  WeightPart part(const std::string& name) const {
    const CheckpointTensor& tensor = checkpoint_->tensor(name);
    const std::string scales = name + "_scale_inv";
    return {.weight = &tensor,
            .block_scales = checkpoint_->contains(scales) ? &checkpoint_->tensor(scales) : nullptr,
            .first_row = 0,
            .rows = tensor.rows(),
            .first_col = 0,
            .cols = tensor.cols()};
  }

 private:
  struct Stored {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
  };

  static void store(float value, DType dtype, std::byte* to) {
    const Half half = to_half(value);
    const BFloat16 bfloat = to_bfloat16(value);
    if (dtype == DType::f32) std::memcpy(to, &value, sizeof(value));
    if (dtype == DType::f16) std::memcpy(to, &half, sizeof(half));
    if (dtype == DType::bf16) std::memcpy(to, &bfloat, sizeof(bfloat));
  }

  TemporaryFolder folder_;
  std::vector<Stored> tensors_;
  std::optional<Checkpoint> checkpoint_;
};

/// A plan for a projection "layer.proj" of that shape.
inline PlannedProjection planned(Route route, std::int64_t n, std::int64_t k, std::int64_t padded_n = 0) {
  PlannedProjection plan;
  plan.name = "layer.proj";
  plan.tensor.role = "proj";
  plan.tensor.n = n;
  plan.tensor.k = k;
  plan.route = route;
  plan.padded_n = padded_n;
  return plan;
}

/// A device tensor with these values.
template <class T>
OwnedTensor on_device(Backend& backend, DType dtype, const Matrix<T>& values) {
  OwnedTensor tensor = backend.allocate(dtype, values.rows(), values.cols());
  backend.write(tensor.tensor, std::as_bytes(values.values()));
  return tensor;
}

template <class T>
Matrix<T> on_host(Backend& backend, const Tensor& tensor) {
  Matrix<T> values(tensor.rows, tensor.cols);
  backend.read(tensor, std::as_writable_bytes(values.values()));
  return values;
}

/// x W^T by the device.
inline Matrix<float> product(Backend& backend, const Linear& weight, const Matrix<float>& x) {
  const OwnedTensor input = on_device(backend, DType::f32, x);
  const OwnedTensor output = backend.allocate(DType::f32, x.rows(), weight.n());
  backend.linear(weight, input.tensor, output.tensor);
  return on_host<float>(backend, output.tensor);
}

/// x W^T + bias in FP64.
inline Matrix<double> exact_product(const Matrix<float>& x, const Matrix<float>& w, std::span<const float> bias = {}) {
  Matrix<double> y(x.rows(), w.rows());
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    for (std::int64_t n = 0; n < w.rows(); ++n) {
      y(i, n) = bias.empty() ? 0.0 : bias[static_cast<std::size_t>(n)];
      for (std::int64_t k = 0; k < x.cols(); ++k) y(i, n) += static_cast<double>(x(i, k)) * w(n, k);
    }
  }
  return y;
}

/// What a checkpoint's type keeps of the values.
inline Matrix<float> rounded(Matrix<float> values, DType dtype) {
  for (float& value : values.values()) {
    if (dtype == DType::f16) value = to_float(to_half(value));
    if (dtype == DType::bf16) value = to_float(to_bfloat16(value));
  }
  return values;
}

/// Matrices of as many columns, one below the other.
inline Matrix<float> stacked(const std::vector<Matrix<float>>& parts) {
  std::int64_t rows = 0;
  for (const Matrix<float>& part : parts) rows += part.rows();
  Matrix<float> all(rows, parts.front().cols());
  std::size_t at = 0;
  for (const Matrix<float>& part : parts) {
    std::copy(part.values().begin(), part.values().end(), all.values().begin() + static_cast<std::ptrdiff_t>(at));
    at += part.values().size();
  }
  return all;
}

}  // namespace qpn8::test
