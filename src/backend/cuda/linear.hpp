#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cuda/memory.hpp"
#include "kernels/cuda/dense_linear.hpp"
#include "kernels/cuda/experts.hpp"
#include "kernels/cuda/gemm.hpp"
#include "kernels/cuda/packed_layout.hpp"
#include "kernels/cuda/stream.hpp"

namespace qpn8::cuda {

/// What a product needs beside its operands.
struct ProductContext {
  const Stream& stream;
  const Gemm& gemm;
  const DeviceBuffer& workspace;
};

/// A projection in GPU memory: y = x W^T + bias.
class CudaLinear : public Linear {
 public:
  explicit CudaLinear(const std::vector<float>& bias);

  /// Any number of rows: up to kMaxPackedRows by the kernels of few rows, whose rows do not depend on each other, more
  /// through cuBLAS.
  void apply(MatrixView<const __half> x, const ProductOutput& y, const ProductContext& context) const;

  /// The same for up to kMaxPackedRows rows of the stream of a pass, normalised before or added to after; only where
  /// can_normalise(), can_add() and can_gate().
  void apply_few(const ProductInput& x, const ProductOutput& y, const ProductContext& context) const;

  /// Whether products of few rows normalise x, gate y or add to it themselves, by shape and device alone.
  virtual bool can_normalise() const = 0;
  virtual bool can_add() const = 0;
  virtual bool can_gate() const = 0;

  /// The weight for expert_products(); those have no bias.
  virtual ExpertWeight as_expert() const = 0;

  /// Kept with the first of a layer's experts, so that it lives as long as they do: the weights of all of them. Empty
  /// until ExpertRunner fills it.
  DeviceBuffer& expert_table() const { return expert_table_; }

 protected:
  const float* bias() const { return bias_.as<float>(); }

 private:
  virtual void multiply_few(const ProductInput& x, const ProductOutput& y, const ProductContext& context) const = 0;
  virtual void multiply_many(MatrixView<const __half> x, const ProductOutput& y,
                             const ProductContext& context) const = 0;

  DeviceBuffer bias_;
  mutable DeviceBuffer expert_table_;
};

class DenseLinear : public CudaLinear {
 public:
  /// `memory` holds what `weight` shows; empty if somebody else keeps it.
  DenseLinear(const DenseWeight& weight, DeviceBuffer memory, const std::vector<float>& bias)
      : CudaLinear(bias),
        weight_(weight),
        memory_(std::move(memory)),
        can_normalise_(dense_can_normalise(weight, linear_limits())) {}

  std::int64_t k() const override { return weight_.k; }
  std::int64_t n() const override { return weight_.n; }
  std::int64_t bytes() const override { return weight_.n * weight_.k * static_cast<std::int64_t>(sizeof(__half)); }
  ExpertWeight as_expert() const override { return {.packed = {}, .dense = weight_}; }
  bool can_normalise() const override { return can_normalise_; }
  bool can_add() const override { return true; }
  bool can_gate() const override { return weight_.n % kFragmentChannels == 0 && bias() == nullptr; }

 private:
  void multiply_few(const ProductInput& x, const ProductOutput& y, const ProductContext& context) const override;
  void multiply_many(MatrixView<const __half> x, const ProductOutput& y, const ProductContext& context) const override;

  DenseWeight weight_;
  DeviceBuffer memory_;
  bool can_normalise_;
};

class PackedLinear : public CudaLinear {
 public:
  /// The last weight.n - n channels are padding.
  PackedLinear(const PackedLayout& weight, DeviceBuffer codes, DeviceBuffer scales, std::int64_t n,
               const std::vector<float>& bias)
      : CudaLinear(bias),
        weight_(weight),
        codes_(std::move(codes)),
        scales_(std::move(scales)),
        n_(n),
        can_normalise_(qpn8::cuda::can_normalise({.k = weight.k, .n = weight.n}, linear_limits())),
        can_add_(qpn8::cuda::can_add({.k = weight.k, .n = weight.n}, linear_limits())) {}

  /// Bytes of workspace that products of many rows with k inputs need at least.
  static std::size_t least_workspace_bytes(std::int64_t k);

  std::int64_t k() const override { return weight_.k; }
  std::int64_t n() const override { return n_; }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(codes_.size() + scales_.size()); }
  ExpertWeight as_expert() const override { return {.packed = weight_, .dense = {}}; }
  bool can_normalise() const override { return can_normalise_; }
  bool can_add() const override { return can_add_; }
  bool can_gate() const override { return weight_.paired_half > 0; }

 private:
  void multiply_few(const ProductInput& x, const ProductOutput& y, const ProductContext& context) const override;
  void multiply_many(MatrixView<const __half> x, const ProductOutput& y, const ProductContext& context) const override;

  PackedLayout weight_;
  DeviceBuffer codes_;
  DeviceBuffer scales_;
  std::int64_t n_;
  bool can_normalise_;
  bool can_add_;
};

}  // namespace qpn8::cuda
