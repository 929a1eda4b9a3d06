#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "base/dtype.hpp"
#include "kernels/cuda/packed_layout.hpp"
#include "kernels/cuda/qpn8_schedule.hpp"

namespace qpn8::cuda {

/// What becomes of a product's numbers, each rounded to the type of y first, so that a product that ends like this has
/// the bits of one that is stored and then worked on.
enum class ProductEnd : std::uint8_t {
  store,
  add,   ///< y += the product; y is FP16
  gate,  ///< y = silu(gate) * up, for a weight whose first half of channels is gate, the second up; y is FP16
};

/// A matrix of rows in device memory that a product writes: FP16, or FP32 for logits.
struct ProductOutput {
  void* data = nullptr;
  DType dtype = DType::f16;
  std::int64_t n = 0;       ///< columns; at most the weight's channels, which may be padded
  std::int64_t stride = 0;  ///< elements between rows
  ProductEnd end = ProductEnd::store;
};

/// x of a product: FP16 in device memory, rows `stride` elements apart and 16-byte aligned.
struct ProductInput {
  const __half* data = nullptr;
  std::int64_t stride = 0;
  int rows = 0;
  /// k weights by which rows are normalised before they are multiplied, x / sqrt(mean(x^2) + eps) * norm, rounded to
  /// FP16; null: rows are as they are.
  const float* norm = nullptr;
  float eps = 0.0F;
};

/// y = x W^T + bias for 1 to kMaxLinearRows rows, asynchronously on `stream`; x [rows, k]. A norm and the
/// ends other than ProductEnd::store are for weights that can_normalise(), can_add() and can_gate(), and up to 8 rows.
///
/// bias n floats or null, added in FP32. FP32 accumulation in a fixed order that depends on the shape and the device
/// alone: row i of an m-row call equals the 1-row call bit for bit. x and y do not overlap.
/// From sm_90 on the kernel reads codes, scales and bias before the kernels that precede it on the stream have finished
/// (programmatic dependent launch), so what writes those must have finished before this call.
/// Error::missing_capability if the launch fails, Error::unsupported_shape for what no schedule serves.
void qpn8_linear(const PackedLayout& weight, const ProductInput& x, const float* bias, const ProductOutput& y,
                 cudaStream_t stream);

/// Whether products of this shape can end in ProductEnd::add, whether they can normalise x (every block must see all of
/// k), and whether they can end in ProductEnd::gate, for a weight with channel scales and paired channels. By shape and
/// device alone, for any rows up to 8.
bool can_add(const LinearShape& shape, const DeviceLimits& device);
bool can_normalise(const LinearShape& shape, const DeviceLimits& device);
bool can_gate(const LinearShape& shape, const DeviceLimits& device);

/// `groups` independent products in one launch: channels [g n, (g + 1) n) of y are x[:, g k .. (g + 1) k) times the
/// g-th weight. `weight` describes all of them stacked: weight.n is groups * n. Otherwise as above, without padding.
void qpn8_linear_grouped(const PackedLayout& weight, std::int64_t groups, const ProductInput& x, const ProductOutput& y,
                         cudaStream_t stream);

/// The same under a given schedule, for tuning and tests; legal in the sense of schedule_refusal.
void qpn8_linear_scheduled(const PackedLayout& weight, std::int64_t groups, const ScheduleShape& schedule,
                           const ProductInput& x, const float* bias, const ProductOutput& y, cudaStream_t stream);

/// What schedules may rely on for the current device and for the code that was built for it.
DeviceLimits linear_limits();

}  // namespace qpn8::cuda
