#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/kv_layer.hpp"
#include "kernels/cuda/stream.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8::cuda {

/// Where the heads of a HeadWork go.
enum class HeadTarget : std::uint8_t { in_place, keys, values };

/// What is done to every head of a matrix [rows, heads * head_dim], in this order: normalised by itself, rotated,
/// stored. FP32 from load to store.
struct HeadWork {
  MatrixView<__half> x;
  const float* norm = nullptr;  ///< head_dim weights; null: not normalised
  float eps = 0.0F;
  bool rotated = false;
  HeadTarget target = HeadTarget::in_place;
};

/// Cosines and sines a row, as rope_angles writes them; angles.cols <= head_dim.
struct Rotation {
  MatrixView<const float> angles;
  bool interleaved = false;  ///< pairs (2 i, 2 i + 1) instead of (i, i + d/2)
};

/// One launch for up to three matrices (q, k and v) of the same rows; unused ones have no columns. `layer` and `places`
/// are used by works that store keys or values.
struct HeadWorks {
  HeadWork works[3];
  std::int64_t head_dim = 0;
  Rotation rotation;
  KvLayer layer;
  RowPlaces places;
};
/// head_dim is at most kMaxHeadDim.
void process_heads(const HeadWorks& work, std::int64_t rows, const Stream& stream);

/// angles[t] = cosines of positions[t] * frequencies, then sines, times scale. The angle is an FP32 product.
void rope_angles(const std::int32_t* positions, MatrixView<const float> frequencies, float scale,
                 MatrixView<float> angles, const Stream& stream);

}  // namespace qpn8::cuda
