#include "qpn8/pack.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/buffer.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "qpn8/quantize.hpp"

namespace qpn8 {
namespace {

using testing::ThrowsMessage;

struct Shape {
  std::int64_t n;
  std::int64_t k;
};

std::vector<Shape> legal_shapes(int count, std::mt19937& random) {
  std::uniform_int_distribution<std::int64_t> tiles(1, 6);
  std::uniform_int_distribution<std::int64_t> groups(1, 24);
  std::vector<Shape> shapes;
  shapes.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) shapes.push_back({tiles(random) * kTileColumns, groups(random) * kKGroup});
  return shapes;
}

Matrix<Half> random_weight(const Shape& shape, std::mt19937& random) {
  std::normal_distribution<float> normal(0.0F, 0.02F);
  Matrix<Half> weight(shape.n, shape.k);
  for (Half& value : weight.values()) value = to_half(normal(random));
  return weight;
}

Matrix<std::uint8_t> random_codes(const Shape& shape, std::mt19937& random) {
  std::uniform_int_distribution<int> byte(0, 255);
  Matrix<std::uint8_t> codes(shape.n, shape.k);
  for (std::uint8_t& code : codes.values()) {
    do {
      code = static_cast<std::uint8_t>(byte(random));
    } while (is_nan_code(code));
  }
  return codes;
}

bool equal_bytes(const PackedWeight& a, const PackedWeight& b) {
  return std::ranges::equal(a.code_bytes(), b.code_bytes()) && a.scales == b.scales && a.small_codes == b.small_codes;
}

TEST(PackChannelwise, EveryRowKeepsItsCodesAndItsOwnScale) {
  std::mt19937 random(5);
  ThreadTeam team(2);
  for (const Shape& shape : legal_shapes(20, random)) {
    const Matrix<Half> weight = random_weight(shape, random);
    const PackedWeight packed = pack_channelwise(weight.view(), team);
    ASSERT_EQ(packed.n, shape.n);
    ASSERT_EQ(packed.k, shape.k);
    ASSERT_EQ(packed.scale_kind, ScaleKind::channel);
    ASSERT_EQ(packed.code_bytes().size(), static_cast<std::size_t>(shape.n * shape.k));
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(shape.k));
    for (std::int64_t row = 0; row < shape.n; ++row) {
      const float scale = quantize_channel(weight.view().row(row), codes);
      for (std::int64_t k = 0; k < shape.k; ++k) {
        ASSERT_EQ(code_at(packed, row, k), codes[static_cast<std::size_t>(k)]) << shape.n << "x" << shape.k;
        ASSERT_EQ(scale_at(packed, row, k), scale);
      }
    }
  }
}

TEST(PackChannelwise, ResultDoesNotDependOnTheTeam) {
  std::mt19937 random(6);
  ThreadTeam one(1);
  ThreadTeam three(3);
  for (const Shape& shape : legal_shapes(5, random)) {
    const Matrix<Half> weight = random_weight(shape, random);
    EXPECT_TRUE(equal_bytes(pack_channelwise(weight.view(), one), pack_channelwise(weight.view(), three)));
  }
}

TEST(PackChannelwise, AFusedProjectionIsItsSourcesOneBelowTheOther) {
  std::mt19937 random(7);
  ThreadTeam team(2);
  const Shape shape{96, 48};
  const Matrix<Half> whole = random_weight(shape, random);
  Matrix<float> middle(30, shape.k);
  Matrix<BFloat16> last(26, shape.k);
  Matrix<Half> same = whole;
  for (std::int64_t k = 0; k < shape.k; ++k) {
    for (std::int64_t r = 0; r < middle.rows(); ++r) middle(r, k) = to_float(whole(40 + r, k));
    for (std::int64_t r = 0; r < last.rows(); ++r) {
      last(r, k) = to_bfloat16(to_float(whole(70 + r, k)));
      same(70 + r, k) = to_half(to_float(last(r, k)));
    }
  }
  const std::vector<RowSource> sources = {{RowSource::Type::f16, whole.view().data, 40, shape.k},
                                          {RowSource::Type::f32, nullptr, 0, shape.k},
                                          {RowSource::Type::f32, middle.view().data, 30, shape.k},
                                          {RowSource::Type::bf16, last.view().data, 26, shape.k}};
  const PackedWeight fused = pack_channelwise(sources, shape.k, team);
  EXPECT_TRUE(equal_bytes(fused, pack_channelwise(same.view(), team)));
}

TEST(PackChannelwise, RowsOfASourceMayLieApart) {
  std::mt19937 random(8);
  ThreadTeam team(1);
  const Matrix<Half> wide = random_weight({32, 80}, random);
  const PackedWeight packed = pack_channelwise(wide.view().col_range(16, 32), team);
  Matrix<Half> narrow(32, 32);
  for (std::int64_t r = 0; r < 32; ++r) {
    for (std::int64_t k = 0; k < 32; ++k) narrow(r, k) = wide(r, 16 + k);
  }
  EXPECT_TRUE(equal_bytes(packed, pack_channelwise(narrow.view(), team)));
}

TEST(PackChannelwise, ANonFiniteValueIsRefusedNamingTheRowOverAllSources) {
  std::mt19937 random(9);
  Matrix<Half> weight = random_weight({64, 32}, random);
  weight(41, 5) = Half{0x7c00};
  weight(50, 6) = Half{0x7e00};
  for (int threads : {1, 2, 3}) {
    ThreadTeam team(threads);
    EXPECT_THAT([&] { pack_channelwise(weight.view(), team); },
                ThrowsMessage<Error>("row 41: element 5 is infinite; weights must be finite"));
    const std::vector<RowSource> halves = {{RowSource::Type::f16, weight.view().row(0).data(), 40, 32},
                                           {RowSource::Type::f16, weight.view().row(40).data(), 24, 32}};
    EXPECT_THAT([&] { pack_channelwise(halves, 32, team); },
                ThrowsMessage<Error>("row 41: element 5 is infinite; weights must be finite"));
  }
}

TEST(PackChannelwise, ShapesThatDoNotFitTheTilesAreRefusedWithTheReason) {
  ThreadTeam team(1);
  EXPECT_THAT([&] { pack_channelwise(Matrix<Half>(1000, 4096).view(), team); },
              ThrowsMessage<Error>("K=4096 N=1000: N is not a multiple of 32"));
  EXPECT_THAT([&] { pack_channelwise(Matrix<Half>(32, 40).view(), team); },
              ThrowsMessage<Error>("K=40 N=32: K is not a multiple of 16"));
  EXPECT_NE(shape_refusal(0, 32), "");
  EXPECT_NE(shape_refusal(16, 0), "");
  EXPECT_EQ(shape_refusal(16, 32), "");
  try {
    pack_channelwise(Matrix<Half>(32, 40).view(), team);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::unsupported_shape);
  }
}

TEST(PackBlockwise, CodesArePackedAsTheyAreAndCutBlocksKeepTheirScale) {
  std::mt19937 random(10);
  std::uniform_real_distribution<float> uniform(0.5F, 2.0F);
  ThreadTeam team(2);
  for (const Shape& shape : {Shape{32, 16}, Shape{128, 128}, Shape{160, 272}, Shape{288, 400}, Shape{96, 1024}}) {
    const Matrix<std::uint8_t> codes = random_codes(shape, random);
    Matrix<float> scales((shape.n + 127) / 128, (shape.k + 127) / 128);
    for (float& scale : scales.values()) scale = uniform(random);
    const PackedWeight packed = pack_blockwise(codes.view(), scales.view(), team);
    ASSERT_EQ(packed.scale_kind, ScaleKind::block);
    for (std::int64_t n = 0; n < shape.n; ++n) {
      for (std::int64_t k = 0; k < shape.k; ++k) {
        ASSERT_EQ(code_at(packed, n, k), codes(n, k)) << n << " " << k;
        ASSERT_EQ(scale_at(packed, n, k), scales(n / 128, k / 128)) << n << " " << k;
      }
    }
  }
}

TEST(PackBlockwise, BadCodesAndScalesAreRefused) {
  std::mt19937 random(12);
  ThreadTeam team(2);
  const Matrix<std::uint8_t> good = random_codes({160, 144}, random);
  Matrix<float> scales(2, 2);
  for (float& scale : scales.values()) scale = 1.0F;

  Matrix<std::uint8_t> nan = good;
  nan(130, 7) = 0xff;
  EXPECT_THAT([&] { pack_blockwise(nan.view(), scales.view(), team); },
              ThrowsMessage<Error>("row 130: code 7 is 0xff, which is NaN; E4M3 codes must be finite"));
  for (const float bad : {0.0F, -1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Matrix<float> wrong = scales;
    wrong(1, 0) = bad;
    EXPECT_THAT([&] { pack_blockwise(good.view(), wrong.view(), team); },
                ThrowsMessage<Error>(testing::HasSubstr("scale row 1: scale 0 is")));
  }
  EXPECT_THAT([&] { pack_blockwise(good.view(), Matrix<float>(2, 1).view(), team); },
              ThrowsMessage<Error>("scales: [2, 1] for codes [160, 144]; [2, 2] is needed"));
  EXPECT_THROW(pack_blockwise(Matrix<std::uint8_t>(100, 144).view(), scales.view(), team), Error);
}

TEST(PackCodes, OneScaleAChannelAndEveryRowIsChecked) {
  std::mt19937 random(13);
  ThreadTeam team(2);
  Matrix<std::uint8_t> codes = random_codes({64, 48}, random);
  std::vector<float> scales(64);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 1.0F + static_cast<float>(i);
  const PackedWeight packed = pack_codes(codes.view(), scales, team);
  for (std::int64_t n = 0; n < 64; ++n) {
    EXPECT_EQ(scale_at(packed, n, 47), scales[static_cast<std::size_t>(n)]);
    for (std::int64_t k = 0; k < 48; ++k) ASSERT_EQ(code_at(packed, n, k), codes(n, k));
  }
  EXPECT_THROW(pack_codes(codes.view(), std::span(scales).first(63), team), Error);
  scales[3] = 0.0F;
  EXPECT_THAT([&] { pack_codes(codes.view(), scales, team); },
              ThrowsMessage<Error>("scale 3 is 0; scales must be finite and positive"));
}

TEST(PackedWeight, SmallCodesAreNotedForExactlyTheQuadsThatHoldOne) {
  ThreadTeam team(1);
  for (int magnitude = 0; magnitude < 16; ++magnitude) {
    Matrix<std::uint8_t> codes(64, 32);
    for (std::uint8_t& code : codes.values()) code = 0x40;
    codes(33, 22) = static_cast<std::uint8_t>(0x80 | magnitude);  // tile 1, group 1, quad 1
    const PackedWeight packed = pack_codes(codes.view(), std::vector<float>(64, 1.0F), team);
    const int expected = magnitude < 8 ? 2 : 0;
    EXPECT_THAT(packed.small_codes, testing::ElementsAre(0, 0, 0, expected)) << magnitude;
  }
}

TEST(PackedWeight, BytesCountWhatAProductReads) {
  ThreadTeam team(1);
  const PackedWeight packed = pack_channelwise(Matrix<Half>(64, 32).view(), team);
  EXPECT_EQ(packed.bytes(), 64 * 32 + 64 * 4 + 2 * 2);
  EXPECT_TRUE(PackedWeight().code_bytes().empty());
}

}  // namespace
}  // namespace qpn8
