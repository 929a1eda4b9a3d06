#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <string>

#include "qpn8/pack.hpp"
#include "qpn8/schedule.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cuda {

/// Packed E4M3 weights in device memory, in the order in which the quad pairs of sm_70 take them (qpn8_quad_pair.cuh
/// describes it): `products` independent weights of n channels and k inputs, one after the other. Owns nothing.
struct QuadPairWeight {
  std::int64_t n = 0;  ///< channels of one product; a multiple of 32
  std::int64_t k = 0;  ///< a multiple of 16
  std::int64_t products = 1;
  ScaleKind scale_kind = ScaleKind::channel;
  std::int64_t block_n = kScaleBlock;  ///< block scales: edges of 16, 32, 64 or 128
  std::int64_t block_k = kScaleBlock;
  const std::uint8_t* codes = nullptr;  ///< products * n * k bytes
  /// channel: products * n. block: [ceil(products * n / block_n), ceil(k / block_k)].
  const float* scales = nullptr;
};

/// Where the channels [0, n) of a segment go: FP16 rows, `stride` elements apart.
struct OutputSegment {
  __half* data = nullptr;
  std::int64_t n = 0;
  std::int64_t stride = 0;
};

/// A small FP16 projection of the same x that rides in the launch: weight [n, k], row-major, or none if n is 0.
struct DenseRider {
  const __half* weight = nullptr;
  std::int64_t n = 0;
};

/// x [rows, products * k] FP16 in device memory, rows `stride` elements apart and 16-byte aligned.
struct QuadPairInput {
  const __half* data = nullptr;
  std::int64_t stride = 0;
  int rows = 0;
};

/// Writes a packed weight into host memory of n * k bytes in the order of QuadPairWeight.
void lay_out_quad_pairs(const PackedWeight& weight, std::span<std::uint8_t> codes, ThreadTeam& team);

/// y = x W^T, product by product, and the rider's outputs after them, asynchronously on `stream`. The output channels
/// fill the segments in order; at most four, which may leave padding at the end unwritten.
///
/// 1 to 8 rows; row i of a call equals the 1-row call bit for bit. The schedule's split_k (at most 32) warps share k.
/// Error::unsupported_shape for what quad_pair_refusal names, Error::missing_capability if the launch fails.
void qpn8_quad_pair(const QuadPairWeight& weight, const Schedule& schedule, const QuadPairInput& x,
                    const DenseRider& rider, std::span<const OutputSegment> y, cudaStream_t stream);

/// y = silu(gate) * up for a weight of one product whose channels are those of gate and then those of up, n / 2 each a
/// multiple of 32. Gate and up stay FP32 on the way. Otherwise as above.
void qpn8_quad_pair_gate_up(const QuadPairWeight& weight, const Schedule& schedule, const QuadPairInput& x,
                            const OutputSegment& y, cudaStream_t stream);

/// Why the kernels cannot run like this, or an empty string.
std::string quad_pair_refusal(const QuadPairWeight& weight, const Schedule& schedule, int rows);

}  // namespace qpn8::cuda
