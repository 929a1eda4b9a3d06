#pragma once

#include <memory>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cpu/memory.hpp"
#include "kernels/cpu/dense_linear.hpp"
#include "qpn8/linear.hpp"
#include "qpn8/pack.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// What a product needs beside its operands.
struct ProductContext {
  Workspace& workspace;
  Scratch& padded;  ///< results of weights that were padded
  ThreadTeam& team;
};

/// A projection in host memory: y = x W^T + bias.
class CpuLinear : public Linear {
 public:
  explicit CpuLinear(std::vector<float> bias) : bias_(std::move(bias)) {}

  void apply(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const;
  bool has_bias() const { return !bias_.empty(); }

 private:
  virtual void multiply_by(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const = 0;

  std::vector<float> bias_;
};

/// In its stored precision, or F32.
class DenseLinear : public CpuLinear {
 public:
  /// `memory` holds what `weight` shows; empty if somebody else keeps it.
  DenseLinear(const DenseWeightView& weight, Buffer memory, std::vector<float> bias)
      : CpuLinear(std::move(bias)), weight_(weight), memory_(std::move(memory)) {}

  std::int64_t k() const override { return weight_.k; }
  std::int64_t n() const override { return weight_.n; }
  std::int64_t bytes() const override {
    return weight_.n * weight_.k * static_cast<std::int64_t>(size_of(weight_.dtype));
  }
  const DenseWeightView& weight() const { return weight_; }

 private:
  void multiply_by(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const override;

  DenseWeightView weight_;
  Buffer memory_;
};

/// E4M3 codes; the last weight.n - n channels are padding.
class PackedLinear : public CpuLinear {
 public:
  PackedLinear(PackedWeight weight, const Schedule& schedule, std::int64_t n, std::vector<float> bias)
      : CpuLinear(std::move(bias)), weight_(std::move(weight)), schedule_(schedule), n_(n) {}

  std::int64_t k() const override { return weight_.k; }
  std::int64_t n() const override { return n_; }
  std::int64_t bytes() const override { return weight_.bytes(); }
  const PackedWeight& weight() const { return weight_; }
  const Schedule& schedule() const { return schedule_; }
  bool is_padded() const { return weight_.n != n_; }

 private:
  void multiply_by(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const override;

  PackedWeight weight_;
  Schedule schedule_;
  std::int64_t n_;
};

/// E2M1 codes with a scale a row and 32 inputs, widened as they are read.
class Fp4Linear : public CpuLinear {
 public:
  Fp4Linear(std::int64_t n, std::int64_t k, Buffer codes, Buffer scales, std::vector<float> bias)
      : CpuLinear(std::move(bias)), n_(n), k_(k), codes_(std::move(codes)), scales_(std::move(scales)) {}

  std::int64_t k() const override { return k_; }
  std::int64_t n() const override { return n_; }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(codes_.size() + scales_.size()); }

 private:
  void multiply_by(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const override;

  std::int64_t n_;
  std::int64_t k_;
  Buffer codes_;
  Buffer scales_;
};

/// Products side by side, each of its own columns of x and y; at least one.
class GroupedLinear : public CpuLinear {
 public:
  GroupedLinear(std::vector<std::unique_ptr<CpuLinear>> parts, std::vector<float> bias)
      : CpuLinear(std::move(bias)), parts_(std::move(parts)) {}

  std::int64_t k() const override { return groups() * parts_.front()->k(); }
  std::int64_t n() const override { return groups() * parts_.front()->n(); }
  std::int64_t groups() const override { return static_cast<std::int64_t>(parts_.size()); }
  std::int64_t bytes() const override;

 private:
  void multiply_by(MatrixView<const float> x, MatrixView<float> y, const ProductContext& context) const override;

  std::vector<std::unique_ptr<CpuLinear>> parts_;
};

}  // namespace qpn8::cpu
