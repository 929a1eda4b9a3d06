#include "qpn8/quantize.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Quantised {
  float scale;
  std::vector<std::uint8_t> codes;
};

template <class T>
Quantised quantise(const std::vector<T>& weight) {
  Quantised result{0.0F, std::vector<std::uint8_t>(weight.size(), 0x55)};
  result.scale = quantize_channel(std::span<const T>(weight), result.codes);
  return result;
}

template <class T>
std::string error_of(const std::vector<T>& weight) {
  try {
    quantise(weight);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::bad_value);
    return error.what();
  }
  return "no error";
}

std::vector<Half> halves(const std::vector<float>& values) {
  std::vector<Half> result;
  for (const float value : values) result.push_back(to_half(value));
  return result;
}

TEST(QuantizeChannel, TheScaleIsTheLargestMagnitudeOver448AndCodesAreNearest) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> weight(1000);
  for (float& value : weight) value = normal(random);
  weight[17] = -0.3F;
  const Quantised result = quantise(weight);
  EXPECT_EQ(result.scale, 0.3F / 448.0F);
  EXPECT_EQ(result.codes[17], 0xfe);
  for (std::size_t i = 0; i < weight.size(); ++i)
    EXPECT_EQ(result.codes[i], encode_e4m3(weight[i] / result.scale)) << i;
}

TEST(QuantizeChannel, EveryFiniteHalfIsReadByItsValue) {
  // Next to the largest value every other one keeps a code that can be told from the plain definition.
  for (int first = 0; first < 0x10000; first += 0x400) {
    std::vector<Half> weight;
    for (int bits = first; bits < first + 0x400; ++bits) {
      if ((bits & 0x7fff) < 0x7c00) weight.push_back(Half{static_cast<std::uint16_t>(bits)});
    }
    if (weight.empty()) continue;
    const Quantised result = quantise(weight);
    for (std::size_t i = 0; i < weight.size(); ++i) {
      ASSERT_EQ(result.codes[i], encode_e4m3(to_float(weight[i]) / result.scale)) << std::hex << weight[i].bits;
    }
  }
}

TEST(QuantizeChannel, BrainFloatsAreReadByTheirValue) {
  std::vector<BFloat16> weight;
  for (const float value : {1.5F, -0.01F, 3e-39F, 0.0F, 2e38F}) weight.push_back(to_bfloat16(value));
  const Quantised result = quantise(weight);
  EXPECT_EQ(result.scale, to_float(weight[4]) / 448.0F);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    EXPECT_EQ(result.codes[i], encode_e4m3(to_float(weight[i]) / result.scale)) << i;
  }
}

TEST(QuantizeChannel, AnAllZeroRowHasScaleOneAndZeroCodes) {
  const Quantised result = quantise(halves({0.0F, -0.0F, 0.0F}));
  EXPECT_EQ(result.scale, 1.0F);
  EXPECT_THAT(result.codes, testing::ElementsAre(0x00, 0x80, 0x00));
  EXPECT_EQ(quantise(std::vector<float>{}).scale, 1.0F);
}

TEST(QuantizeChannel, DenormalHalvesAreQuantisedLikeAnyOther) {
  const Quantised result = quantise(halves({0x1p-24F, -0x1p-20F, 0x1p-15F}));
  EXPECT_EQ(result.scale, 0x1p-15F / 448.0F);
  EXPECT_EQ(result.codes[2], 0x7e);
  EXPECT_EQ(result.codes[0], encode_e4m3(448.0F / 512.0F));
}

TEST(QuantizeChannel, TheLargestFiniteValuesStayFinite) {
  const Quantised half = quantise(halves({65504.0F, -1.0F}));
  EXPECT_EQ(half.scale, 65504.0F / 448.0F);
  EXPECT_EQ(half.codes[0], 0x7e);
  const Quantised single = quantise(std::vector<float>{-std::numeric_limits<float>::max(), 1.0F});
  EXPECT_TRUE(std::isfinite(single.scale * 448.0F));
  EXPECT_EQ(single.codes[0], 0xfe);
}

TEST(QuantizeChannel, WhereTheScaleWouldVanishItStaysNormalAndTheCodesGetCoarser) {
  for (const float amax : {std::numeric_limits<float>::denorm_min(), 1e-44F, 1e-40F, 0x1p-126F, 5e-36F}) {
    const Quantised result = quantise(std::vector<float>{amax, -amax, 0.0F});
    EXPECT_EQ(result.scale, std::numeric_limits<float>::min()) << amax;
    const float step = 0x1p-9F * result.scale;
    const float bound = std::max(step / 2, amax / 16);
    EXPECT_NEAR(decode_e4m3(result.codes[0]) * result.scale, amax, bound) << amax;
    EXPECT_EQ(result.codes[1], result.codes[0] | 0x80);
  }
}

TEST(QuantizeChannel, NonFiniteWeightsAreRefusedNamingTheElement) {
  EXPECT_EQ(error_of(std::vector<float>{1, kNan, kInfinity}), "element 1 is NaN; weights must be finite");
  EXPECT_EQ(error_of(halves({1, 2, -kInfinity})), "element 2 is infinite; weights must be finite");
  EXPECT_EQ(error_of(std::vector<BFloat16>{to_bfloat16(kNan)}), "element 0 is NaN; weights must be finite");
}

TEST(CheckScales, OnlyFinitePositiveScalesPass) {
  EXPECT_NO_THROW(check_scales(std::vector<float>{1.0F, 1e-30F, 0x1p-149F}));
  for (const float bad : {0.0F, -1.0F, kInfinity, kNan, -kInfinity}) {
    EXPECT_THAT(
        [&] {
          check_scales(std::vector<float>{1.0F, bad});
        },
        testing::ThrowsMessage<Error>(testing::HasSubstr("scale 1 is")))
        << bad;
  }
}

TEST(CheckScales, AScaleThatTakesTheLargestCodeOutOfFp32IsRefused) {
  const float largest = std::numeric_limits<float>::max() / kE4M3Max;
  EXPECT_NO_THROW(check_scales(std::vector<float>{largest}));
  EXPECT_THAT(
      [&] {
        check_scales(std::vector<float>{1.0F, 1.01F * largest});
      },
      testing::ThrowsMessage<Error>(
          testing::AllOf(testing::HasSubstr("scale 1 is 7.6"), testing::HasSubstr("448 times a scale"))));
}

TEST(CheckCodes, NanCodesAreRefusedNamingTheFirst) {
  EXPECT_NO_THROW(check_codes(std::vector<std::uint8_t>{0x00, 0x7e, 0xfe, 0x80}));
  EXPECT_THAT(
      [] {
        check_codes(std::vector<std::uint8_t>{0x00, 0xff, 0x7f});
      },
      testing::ThrowsMessage<Error>("code 1 is 0xff, which is NaN; E4M3 codes must be finite"));
}

}  // namespace
}  // namespace qpn8
