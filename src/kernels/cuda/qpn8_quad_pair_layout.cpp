#include <array>

#include "base/check.hpp"
#include "kernels/cuda/qpn8_quad_pair.hpp"

namespace qpn8::cuda {
namespace {

constexpr std::int64_t kLanes = 32;
constexpr std::int64_t kQuad = 4;
constexpr std::int64_t kQuads = kKGroup / kQuad;
constexpr std::int64_t kGroupBytes = kTileColumns * kKGroup;

/// The byte of a word that holds k = 4 j + index: codes 0 and 1 in the upper bytes of the halves, 2 and 3 in the lower.
constexpr std::array<std::size_t, 4> kBytePlace = {1, 3, 0, 2};

constexpr std::int64_t lane_channel(std::int64_t lane) { return lane / 4 % 4 * 8 + lane % 4 + lane / 16 * 4; }

void lay_out_group(const std::uint8_t* quads, std::uint8_t* out) {
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    for (std::int64_t quad = 0; quad < kQuads; ++quad, out += kQuad) {
      const std::uint8_t* codes = quads + (quad * kTileColumns + lane_channel(lane)) * kQuad;
      for (std::size_t index = 0; index < kBytePlace.size(); ++index) out[kBytePlace[index]] = codes[index];
    }
  }
}

}  // namespace

void lay_out_quad_pairs(const PackedWeight& weight, std::span<std::uint8_t> codes, ThreadTeam& team) {
  check(codes.size() == static_cast<std::size_t>(weight.n * weight.k), "room for every code");
  // Both layouts walk tiles of 32 channels and then groups of 16 k.
  const std::uint8_t* from = weight.code_bytes().data();
  team.for_ranges(weight.n / kTileColumns * (weight.k / kKGroup), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      lay_out_group(from + group * kGroupBytes, codes.data() + group * kGroupBytes);
    }
  });
}

}  // namespace qpn8::cuda
