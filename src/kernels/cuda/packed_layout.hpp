#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qpn8/pack.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cuda {

inline constexpr std::int64_t kFragmentChannels = 16;  ///< output channels a tile: the rows of an m16n8k16 A operand
inline constexpr std::int64_t kFragmentStep = 32;      ///< k a tile advances by for every 512 bytes

/// A packed E4M3 weight in device memory, in the order in which the tensor cores take it. Owns nothing.
///
/// Layout: codes [n / 16 tiles][ceil(k / 32) steps][32 lanes][16 bytes]. Byte i of lane 4 g + q of a step holds the
/// code of channel 16 tile + g + 8 ((i / 4) & 1) at k = 32 step + 8 q + 4 (i / 8) + i % 4: one 16-byte load a lane is
/// the weight operand (A, 16 channels) of two mma.m16n8k16. Codes of k beyond the weight's are zero.
struct PackedLayout {
  std::int64_t n = 0;  ///< channels stored, padding included; a multiple of 16
  std::int64_t k = 0;  ///< inputs; a multiple of 16
  ScaleKind scale_kind = ScaleKind::channel;
  std::int64_t block_n = kScaleBlock;  ///< block scales: edges that divide 128; block_n a multiple of 16, block_k of 32
  std::int64_t block_k = kScaleBlock;
  const std::uint8_t* codes = nullptr;
  /// channel: n scales. block: [ceil(n / block_n), ceil(k / block_k)]. Those of the codes' own values.
  const float* scales = nullptr;
  /// Not 0: channels come in pairs of eights, so that a block has both of a gated pair: stored channel 16 t + c is
  /// channel 8 t + c of the first paired_half ones, or for c >= 8 channel 8 t + c - 8 of the others. Channel scales.
  std::int64_t paired_half = 0;

  constexpr std::int64_t steps() const { return (k + kFragmentStep - 1) / kFragmentStep; }
};

/// Bytes of the codes in that layout.
std::size_t packed_code_bytes(std::int64_t n, std::int64_t k);

inline constexpr int kPairChannels = 8;  ///< of gate, then of up, where they are paired

/// The channel of the weight that a layout with that paired_half stores as its `stored`-th.
constexpr std::int64_t channel_stored_at(std::int64_t stored, std::int64_t paired_half) {
  if (paired_half == 0) return stored;
  const std::int64_t in_half = stored / kFragmentChannels * kPairChannels + stored % kPairChannels;
  return in_half + (stored % kFragmentChannels < kPairChannels ? 0 : paired_half);
}

/// Writes the codes of a packed weight in that layout into host memory of packed_code_bytes(weight.n, weight.k).
/// paired_half as in PackedLayout.
void lay_out_codes(const PackedWeight& weight, std::int64_t paired_half, std::span<std::uint8_t> codes,
                   ThreadTeam& team);

}  // namespace qpn8::cuda
