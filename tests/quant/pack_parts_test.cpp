#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "qpn8/pack.hpp"
#include "support/error_of.hpp"

namespace qpn8 {
namespace {

using test::error_of;

/// A checkpoint's matrix of codes with one scale a block of 128 x 128, each scale another.
struct Stored {
  Stored(std::int64_t n, std::int64_t k, unsigned seed) : codes(n, k), scales((n + 127) / 128, (k + 127) / 128) {
    std::mt19937 random(seed);
    for (std::uint8_t& code : codes.values())
      code = static_cast<std::uint8_t>(random() % 127U + 128U * (random() % 2U));
    float next = static_cast<float>(seed);
    for (float& scale : scales.values()) scale = next += 0.5F;
  }

  BlockSource rectangle(std::int64_t first_row, std::int64_t rows, std::int64_t first_col, std::int64_t cols) const {
    return {.codes = codes.view().row_range(first_row, rows).col_range(first_col, cols),
            .scales = scales.view(),
            .first_row = first_row,
            .first_col = first_col};
  }

  Matrix<std::uint8_t> codes;
  Matrix<float> scales;
};

void expect_every_code_with_its_scale(const PackedWeight& packed, const Stored& stored, std::int64_t at,
                                      const BlockSource& source) {
  for (std::int64_t n = 0; n < source.codes.rows; ++n) {
    for (std::int64_t k = 0; k < source.codes.cols; ++k) {
      const std::int64_t row = source.first_row + n;
      const std::int64_t col = source.first_col + k;
      ASSERT_EQ(code_at(packed, at + n, k), stored.codes(row, col)) << n << " " << k;
      ASSERT_EQ(scale_at(packed, at + n, k), stored.scales(row / 128, col / 128)) << n << " " << k;
    }
  }
}

TEST(PackBlockParts, AShardCutAnywhereOnSixteensKeepsItsScales) {
  const Stored stored(400, 512, 1);
  ThreadTeam team(3);
  for (const std::int64_t first_row : {0, 128, 64, 32, 16, 208}) {
    for (const std::int64_t first_col : {0, 128, 64, 48, 112}) {
      const BlockSource shard = stored.rectangle(first_row, 160, first_col, 272);
      const PackedWeight packed = pack_blockwise(std::span(&shard, 1), 272, 0, team);
      expect_every_code_with_its_scale(packed, stored, 0, shard);
    }
  }
}

TEST(PackBlockParts, StackedMatricesKeepTheirScalesAcrossTilesThatTheyShare) {
  const Stored q(176, 256, 1);
  const Stored k(80, 256, 2);
  const std::vector<BlockSource> parts = {q.rectangle(0, 176, 0, 256), k.rectangle(0, 80, 0, 256)};
  for (const int threads : {1, 4}) {
    ThreadTeam team(threads);
    const PackedWeight packed = pack_blockwise(parts, 256, 0, team);
    EXPECT_EQ(packed.block_n, 16);
    EXPECT_EQ(packed.block_k, 128);
    expect_every_code_with_its_scale(packed, q, 0, parts[0]);
    expect_every_code_with_its_scale(packed, k, 176, parts[1]);
  }
}

TEST(PackBlockParts, BlocksThatNoBorderCutsStayWhole) {
  const Stored a(256, 256, 1);
  const Stored b(160, 256, 2);
  const std::vector<BlockSource> parts = {a.rectangle(128, 128, 128, 128), b.rectangle(0, 160, 0, 128)};
  ThreadTeam team(2);
  const PackedWeight packed = pack_blockwise(parts, 128, 0, team);
  EXPECT_EQ(packed.block_n, 128);
  EXPECT_EQ(packed.block_k, 128);
  EXPECT_EQ(packed.scales.size(), 3U);
}

TEST(PackBlockParts, PaddingIsZeroChannelsAndCutsNoBlock) {
  const Stored stored(50, 160, 1);
  const BlockSource source = stored.rectangle(0, 50, 0, 160);
  ThreadTeam team(2);
  for (const std::int64_t padded_n : {64, 160}) {
    const PackedWeight packed = pack_blockwise(std::span(&source, 1), 160, padded_n, team);
    ASSERT_EQ(packed.n, padded_n);
    EXPECT_EQ(packed.block_n, 128);
    EXPECT_EQ(static_cast<std::int64_t>(packed.scales.size()), (padded_n + 127) / 128 * 2);
    expect_every_code_with_its_scale(packed, stored, 0, source);
    for (std::int64_t n = 50; n < padded_n; ++n) {
      for (std::int64_t k = 0; k < 160; ++k) ASSERT_EQ(code_at(packed, n, k), 0);
    }
    // The second tile has padding: a zero in every quad.
    for (std::int64_t group = 10; group < 20; ++group)
      EXPECT_EQ(packed.small_codes[static_cast<std::size_t>(group)], 0xf);
  }
}

TEST(PackBlockParts, BordersWithinSixteenAreRefused) {
  const Stored stored(256, 256, 1);
  ThreadTeam team(2);
  const BlockSource rows = stored.rectangle(8, 64, 0, 64);
  const BlockSource cols = stored.rectangle(0, 64, 4, 64);
  EXPECT_EQ(error_of([&] { pack_blockwise(std::span(&rows, 1), 64, 0, team); }),
            "borders cut the scale blocks into 8 channels by 128 inputs; multiples of 16 are needed");
  EXPECT_EQ(error_of([&] { pack_blockwise(std::span(&cols, 1), 64, 0, team); }),
            "borders cut the scale blocks into 128 channels by 4 inputs; multiples of 16 are needed");
}

TEST(PackBlockParts, FewerScalesThanTheRectangleNeedsAreRefused) {
  const Stored stored(256, 256, 1);
  ThreadTeam team(2);
  BlockSource source = stored.rectangle(64, 160, 0, 64);
  source.scales = source.scales.row_range(0, 1);
  EXPECT_THAT(error_of([&] { pack_blockwise(std::span(&source, 1), 64, 0, team); }),
              testing::HasSubstr("scales of at least [2, 1] are needed"));
}

TEST(PackBlockParts, ABadCodeOfALaterPartIsNamedByItsRowOverAll) {
  const Stored a(64, 64, 1);
  Stored b(64, 64, 2);
  b.codes(3, 9) = 0x7f;
  const std::vector<BlockSource> parts = {a.rectangle(0, 64, 0, 64), b.rectangle(0, 64, 0, 64)};
  ThreadTeam team(2);
  EXPECT_THAT(error_of([&] { pack_blockwise(parts, 64, 0, team); }), testing::StartsWith("row 67: code 9 is 0x7f"));
}

}  // namespace
}  // namespace qpn8
