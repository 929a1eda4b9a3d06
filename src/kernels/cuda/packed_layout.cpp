#include "kernels/cuda/packed_layout.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace qpn8::cuda {
namespace {

constexpr std::int64_t kLanes = 32;
constexpr std::int64_t kLaneBytes = 16;
constexpr std::int64_t kWord = 4;

// Both layouts keep four codes of one channel and consecutive k together, so that they move as words.
void lay_out_step(const PackedWeight& weight, std::int64_t paired_half, std::int64_t tile, std::int64_t step,
                  std::uint8_t* out) {
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    const std::int64_t first_k = step * kFragmentStep + lane % 4 * 8;
    if (first_k >= weight.k) continue;  // k is a multiple of 16, so a lane's eight are there or none is
    for (std::int64_t word = 0; word < kLaneBytes / kWord; ++word) {
      const std::int64_t channel = channel_stored_at(tile * kFragmentChannels + lane / 4 + 8 * (word % 2), paired_half);
      const std::int64_t k = first_k + word / 2 * kWord;
      const std::uint8_t* tile_of_columns =
          weight.code_bytes().data() + channel / kTileColumns * kTileColumns * weight.k;
      std::memcpy(out + lane * kLaneBytes + word * kWord,
                  tile_of_columns + k * kTileColumns + channel % kTileColumns * kWord, kWord);
    }
  }
}

}  // namespace

std::size_t packed_code_bytes(std::int64_t n, std::int64_t k) {
  return static_cast<std::size_t>(n * ((k + kFragmentStep - 1) / kFragmentStep * kFragmentStep));
}

void lay_out_codes(const PackedWeight& weight, std::int64_t paired_half, std::span<std::uint8_t> codes,
                   ThreadTeam& team) {
  check(codes.size() == packed_code_bytes(weight.n, weight.k), "room for every code");
  std::fill(codes.begin(), codes.end(), std::uint8_t{0});
  const std::int64_t steps = (weight.k + kFragmentStep - 1) / kFragmentStep;
  const std::int64_t step_bytes = kLanes * kLaneBytes;
  team.for_ranges(weight.n / kFragmentChannels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      for (std::int64_t step = 0; step < steps; ++step) {
        lay_out_step(weight, paired_half, tile, step, codes.data() + (tile * steps + step) * step_bytes);
      }
    }
  });
}

}  // namespace qpn8::cuda
