#include "kernels/cuda/packed_layout.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/numbers.hpp"

namespace qpn8::cuda {
namespace {

TEST(PackedLayout, EveryCodeIsWhereTheFormulaSaysAndTheRestIsZero) {
  for (const std::int64_t k : {16, 32, 48, 128, 272}) {
    ThreadTeam team(2);
    Matrix<std::uint8_t> codes(64, k);
    unsigned next = 1;
    for (std::uint8_t& code : codes.values()) code = static_cast<std::uint8_t>(next = next * 29 % 126);
    const std::vector<float> scales(64, 1.0F);
    const PackedWeight weight = pack_codes(codes.view(), scales, team);
    std::vector<std::uint8_t> out(packed_code_bytes(64, k), 0xee);
    lay_out_codes(weight, 0, out, team);
    const std::int64_t steps = (k + 31) / 32;
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(out.size()); ++at) {
      const std::int64_t i = at % 16;
      const std::int64_t lane = at / 16 % 32;
      const std::int64_t step = at / 512 % steps;
      const std::int64_t channel = at / 512 / steps * 16 + lane / 4 + 8 * (i / 4 % 2);
      const std::int64_t input = 32 * step + lane % 4 * 8 + i / 8 * 4 + i % 4;
      EXPECT_EQ(out[static_cast<std::size_t>(at)], input < k ? codes(channel, input) : 0) << "K=" << k << " at " << at;
    }
  }
}

TEST(PackedLayout, PairedChannelsAreEightsOfGateAndThenOfUp) {
  constexpr std::int64_t kHalf = 32;
  std::vector<bool> seen(2 * kHalf);
  for (std::int64_t stored = 0; stored < 2 * kHalf; ++stored) {
    const std::int64_t channel = channel_stored_at(stored, kHalf);
    const std::int64_t in_half = stored / 16 * 8 + stored % 8;
    EXPECT_EQ(channel, stored % 16 < 8 ? in_half : kHalf + in_half) << stored;
    EXPECT_FALSE(seen[static_cast<std::size_t>(channel)]) << stored;
    seen[static_cast<std::size_t>(channel)] = true;
    EXPECT_EQ(channel_stored_at(stored, 0), stored);
  }
}

}  // namespace
}  // namespace qpn8::cuda
