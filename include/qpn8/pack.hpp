#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qpn8/half.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

// Packing is pure: the functions below may be called from several threads at once, each with a ThreadTeam of its own,
// and a PackedWeight may be read by any number of them. Memory that the system does not have is std::bad_alloc.

namespace qpn8 {

inline constexpr std::int64_t kTileColumns = 32;  ///< output channels a tile
inline constexpr std::int64_t kKGroup = 16;       ///< k is walked in groups of 16
inline constexpr std::int64_t kScaleBlock = 128;  ///< edge of a block of block-scaled checkpoints

enum class ScaleKind : std::uint8_t {
  channel,  ///< one scale an output channel
  block,    ///< one scale a block of 128 x 128, or of a part of one (the last of a row or column may be cut)
};

/// An E4M3 weight of n output channels and k inputs (y = x W^T, W [n, k]) in the order in which the CPU kernels read
/// it.
///
/// Layout: tile t holds channels [32 t, 32 t + 32) for all k; within a tile, for every quad of k (4 q .. 4 q + 3) the
/// 128 bytes code(channel c, 4 q), .., code(channel c, 4 q + 3) for c = 0..31: a 32-bit lane of a vector belongs to one
/// channel, and shifting it brings each of its four codes to the top of the lane, where an FP32 number has its sign and
/// exponent. n is a multiple of 32 and k of 16.
///
/// Made by the functions below, which check what they are given; whoever fills one in by hand vouches for it. Copies
/// share the codes.
struct PackedWeight {
  std::int64_t n = 0;
  std::int64_t k = 0;
  ScaleKind scale_kind = ScaleKind::channel;
  std::shared_ptr<const std::uint8_t[]> codes;  ///< n * k bytes, 64-byte aligned, in huge pages where there are some
  /// block: the edges, 16, 32, 64 or 128 each. 128 unless the weight was cut from a checkpoint's matrix, or stacked
  /// from several, at borders within its blocks.
  std::int64_t block_n = kScaleBlock;
  std::int64_t block_k = kScaleBlock;
  /// channel: n scales. block: ceil(n / block_n) rows of ceil(k / block_k). Without the factor 2^8 of the decode.
  std::vector<float> scales;
  /// For every tile and group of 16 k a byte, [n / 32, k / 16]: bit q is set if quad q of the group holds a code of
  /// magnitude below 8 (zero or subnormal). Those are not of the form (1 + m/8) 2^e and need a longer decode; they are
  /// rare (1 in 10^4 for Gaussian weights), so kernels take the short one where the bit is clear. Both are exact.
  std::vector<std::uint8_t> small_codes;

  /// The n * k bytes of `codes`; empty before anything was packed.
  std::span<const std::uint8_t> code_bytes() const;
  /// Bytes a product has to read: codes, scales and small_codes.
  std::int64_t bytes() const;
};

/// A source of rows for packing, so that a fused projection (q, k and v; gate and up) is packed without being
/// concatenated first and so that the source can be released as it is consumed.
struct RowSource {
  enum class Type : std::uint8_t { f32, f16, bf16 };
  Type type = Type::f16;
  const void* data = nullptr;  ///< [rows, k], row-major
  std::int64_t rows = 0;
  std::int64_t stride = 0;  ///< elements between rows
};

/// Quantises and packs the rows of `sources`, in order, one scale per output channel (quantize_channel).
///
/// The sum of rows is n; n % 32 == 0 and k % 16 == 0, else Error::unsupported_shape; no padding happens here. A value
/// that is not finite is Error::bad_value naming the row (counted over all sources).
/// Cost: one pass over the weight; n * k bytes are allocated. Parallel over tiles; the result does not depend on the
/// team's size.
PackedWeight pack_channelwise(std::span<const RowSource> sources, std::int64_t k, ThreadTeam& team);

/// The same for one source, FP16.
PackedWeight pack_channelwise(MatrixView<const Half> weight, ThreadTeam& team);

/// Packs codes as they are, never requantised. codes [n, k]; scales [ceil(n / 128), ceil(k / 128)], else
/// Error::bad_argument. A scale that check_scales refuses and a NaN code are Error::bad_value naming the row. Shapes as
/// in pack_channelwise.
PackedWeight pack_blockwise(MatrixView<const std::uint8_t> codes, MatrixView<const float> scales, ThreadTeam& team);

/// A rectangle of a matrix of codes with block scales, for packing a projection of several such matrices, or a shard of
/// one. The scales stay those of the whole matrix, and so do its blocks: the rectangle may begin within one.
struct BlockSource {
  MatrixView<const std::uint8_t> codes;  ///< the rectangle alone, [rows, k]
  MatrixView<const float> scales;        ///< of the whole matrix, one a block of 128 x 128
  std::int64_t first_row = 0;            ///< where in the whole matrix the rectangle begins
  std::int64_t first_col = 0;
};

/// Packs the rows of `sources`, in order, as in the function above, and zero channels after them up to `padded_n` (0:
/// no padding). Scales are repeated for the parts of a block where borders cut it, so that every code keeps its own.
/// Borders of n and of k that are not multiples of 16 within a block are Error::unsupported_shape; fewer scales than
/// the rectangle needs are Error::bad_argument.
PackedWeight pack_blockwise(std::span<const BlockSource> sources, std::int64_t k, std::int64_t padded_n,
                            ThreadTeam& team);

/// Packs codes as they are, with one scale per output channel: codes [n, k], n scales. Errors as in pack_blockwise.
PackedWeight pack_codes(MatrixView<const std::uint8_t> codes, std::span<const float> scales, ThreadTeam& team);

/// The code of channel `n` at input `k`, which must lie within the weight (check()ed): the inverse of packing, for
/// tests and audits.
std::uint8_t code_at(const PackedWeight& weight, std::int64_t n, std::int64_t k);

/// The scale that multiplies code_at(weight, n, k), under the same condition.
float scale_at(const PackedWeight& weight, std::int64_t n, std::int64_t k);

/// Why the shape cannot be packed ("K=4096 N=1000: N is not a multiple of 32"), or an empty string.
std::string shape_refusal(std::int64_t k, std::int64_t n);

}  // namespace qpn8
