#pragma once

#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backend/backend.hpp"
#include "backend/cuda/kv_cache.hpp"
#include "base/check.hpp"
#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/heads.hpp"
#include "kernels/cuda/qpn8_linear.hpp"

// What kernels see of a backend's operands.

namespace qpn8::cuda {

inline MatrixView<__half> halves(const Tensor& tensor) {
  check(tensor.dtype == DType::f16, "activations are F16");
  return tensor.host<__half>();
}

inline MatrixView<float> floats(const Tensor& tensor) {
  check(tensor.dtype == DType::f32, "logits, angles and norms are F32");
  return tensor.host<float>();
}

inline const float* single_row(const Tensor& tensor) {
  check(tensor.rows == 1, "one row");
  return floats(tensor).data;
}

inline MatrixView<std::int32_t> integers(const Tensor& tensor) {
  check(tensor.dtype == DType::i32, "ids and positions are I32");
  return tensor.host<std::int32_t>();
}

/// A column of integers without gaps.
inline std::int32_t* column(const Tensor& tensor) {
  check(tensor.cols == 1 && (tensor.stride == 1 || tensor.rows <= 1), "a column without gaps");
  return integers(tensor).data;
}

inline RowPlaces places_of(const Batch& batch) { return {column(batch.slots), column(batch.positions)}; }

/// Splits of attention for a batch, rounded up to a power of two so that a recorded step serves many positions.
inline std::int64_t splits_of(const Batch& batch) {
  std::int64_t furthest = 0;
  for (const BatchSpan& span : batch.spans) furthest = std::max(furthest, span.first_position + span.rows - 1);
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(furthest / kAttentionSplit + 1)));
}

inline AttentionRule rule_of(const AttentionShape& shape) {
  return {.heads = shape.heads, .scale = shape.scale, .window = shape.window};
}

inline ProductInput normalised(const ResidualStream& residual, const RowNorm& norm) {
  const MatrixView<__half> rows = halves(residual.hidden);
  return {.data = rows.data,
          .stride = rows.stride,
          .rows = static_cast<int>(rows.rows),
          .norm = single_row(norm.weight),
          .eps = norm.eps};
}

inline HeadWorks head_works(KvCache& cache, std::int64_t layer, const HeadInputs& heads, const Batch& batch) {
  const KvLayer kv = static_cast<CudaKvCache&>(cache).layer(layer);
  const auto norm = [](const Tensor* weight) { return weight == nullptr ? nullptr : single_row(*weight); };
  HeadWorks work = {.works = {},
                    .head_dim = kv.head_dim,
                    .rotation = {floats(heads.angles), heads.pairing == RopePairing::interleaved},
                    .layer = kv,
                    .places = places_of(batch)};
  work.works[0] = {.x = halves(heads.q), .norm = norm(heads.q_norm), .eps = heads.eps, .rotated = true};
  work.works[1] = {
      .x = halves(heads.k), .norm = norm(heads.k_norm), .eps = heads.eps, .rotated = true, .target = HeadTarget::keys};
  work.works[2] = {.x = halves(heads.v), .target = HeadTarget::values};
  return work;
}

}  // namespace qpn8::cuda
