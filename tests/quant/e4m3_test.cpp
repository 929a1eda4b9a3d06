#include "qpn8/e4m3.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace qpn8 {
namespace {

// The magnitudes of codes 0x00 to 0x7e in units of 2^-9, from the table of the OCP specification.
// clang-format off
constexpr std::array<int, 127> kMagnitudes = {
    0, 1, 2, 3, 4, 5, 6, 7,
    8, 9, 10, 11, 12, 13, 14, 15,
    16, 18, 20, 22, 24, 26, 28, 30,
    32, 36, 40, 44, 48, 52, 56, 60,
    64, 72, 80, 88, 96, 104, 112, 120,
    128, 144, 160, 176, 192, 208, 224, 240,
    256, 288, 320, 352, 384, 416, 448, 480,
    512, 576, 640, 704, 768, 832, 896, 960,
    1024, 1152, 1280, 1408, 1536, 1664, 1792, 1920,
    2048, 2304, 2560, 2816, 3072, 3328, 3584, 3840,
    4096, 4608, 5120, 5632, 6144, 6656, 7168, 7680,
    8192, 9216, 10240, 11264, 12288, 13312, 14336, 15360,
    16384, 18432, 20480, 22528, 24576, 26624, 28672, 30720,
    32768, 36864, 40960, 45056, 49152, 53248, 57344, 61440,
    65536, 73728, 81920, 90112, 98304, 106496, 114688, 122880,
    131072, 147456, 163840, 180224, 196608, 212992, 229376,
};
// clang-format on

double table_value(int code) {
  const double magnitude = std::ldexp(kMagnitudes[static_cast<std::size_t>(code & 0x7f)], -9);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

/// The nearest code by looking at all of them; of two equally near ones the even.
int nearest_code(float value) {
  const int sign = std::signbit(value) ? 0x80 : 0;
  int best = sign;
  for (int code = sign; code < sign + 127; ++code) {
    const double distance = std::fabs(table_value(code) - value);
    const double best_distance = std::fabs(table_value(best) - value);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) best = code;
  }
  return best;
}

TEST(E4M3, EveryCodeDecodesToTheValueOfTheTable) {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(is_nan_code(byte));
      EXPECT_TRUE(std::isnan(decode_e4m3(byte)));
      continue;
    }
    EXPECT_FALSE(is_nan_code(byte));
    EXPECT_EQ(decode_e4m3(byte), table_value(code)) << code;
    EXPECT_EQ(std::signbit(decode_e4m3(byte)), code >= 0x80) << code;
  }
}

TEST(E4M3, TheHalfPrecisionDecodeIsExactlyAPartIn256OfEveryFiniteCode) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    const float value = to_float(decode_e4m3_over_256(static_cast<std::uint8_t>(code)));
    EXPECT_EQ(value * 256.0, table_value(code)) << code;
    EXPECT_EQ(std::signbit(value), code >= 0x80) << code;
  }
}

TEST(E4M3, EveryFiniteCodeSurvivesDecodingAndEncoding) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    EXPECT_EQ(encode_e4m3(decode_e4m3(static_cast<std::uint8_t>(code))), code);
  }
}

TEST(E4M3, MidpointsRoundToTheEvenCodeAndTheirNeighboursToTheNearest) {
  for (int code = 0; code < 126; ++code) {
    const auto middle = static_cast<float>((table_value(code) + table_value(code + 1)) / 2);
    EXPECT_EQ(encode_e4m3(middle), code % 2 == 0 ? code : code + 1) << middle;
    EXPECT_EQ(encode_e4m3(-middle), 0x80 | (code % 2 == 0 ? code : code + 1)) << middle;
    EXPECT_EQ(encode_e4m3(std::nextafter(middle, 0.0F)), code) << middle;
    EXPECT_EQ(encode_e4m3(std::nextafter(middle, 1000.0F)), code + 1) << middle;
  }
}

TEST(E4M3, RandomValuesEncodeToTheNearestCodeOfAnExhaustiveSearch) {
  std::mt19937 random(11);
  std::uniform_real_distribution<float> mantissa(-2.0F, 2.0F);
  std::uniform_int_distribution<int> exponent(-140, 9);
  for (int i = 0; i < 20000; ++i) {
    const float value = std::ldexp(mantissa(random), exponent(random));
    EXPECT_EQ(encode_e4m3(value), nearest_code(value)) << value;
  }
}

TEST(E4M3, TheBorderOfTheRangeSaturatesAndNothingBecomesNan) {
  for (float value : {448.0F, 448.0001F, 463.9F, 464.0F, 464.1F, 480.0F, 1e30F, std::numeric_limits<float>::max(),
                      std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(encode_e4m3(value), 0x7e) << value;
    EXPECT_EQ(encode_e4m3(-value), 0xfe) << value;
  }
  EXPECT_EQ(encode_e4m3(432.0F), 0x7e);  // midpoint of 416 and 448
  EXPECT_EQ(encode_e4m3(431.9F), 0x7d);
}

TEST(E4M3, NanEncodesToTheNanCode) {
  EXPECT_EQ(encode_e4m3(std::numeric_limits<float>::quiet_NaN()), 0x7f);
  EXPECT_EQ(encode_e4m3(-std::numeric_limits<float>::quiet_NaN()), 0x7f);
}

TEST(E4M3, ZerosAndDenormalNumbersKeepTheirSign) {
  for (float value : {0.0F, std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(), 0x1p-10F}) {
    EXPECT_EQ(encode_e4m3(value), 0x00) << value;
    EXPECT_EQ(encode_e4m3(-value), 0x80) << value;
  }
  EXPECT_EQ(encode_e4m3(std::nextafter(0x1p-10F, 1.0F)), 0x01);
}

TEST(E8M0, EveryCodeIsItsPowerOfTwo) {
  double power = 0x1p-127;
  for (int code = 0; code < 255; ++code, power *= 2) {
    EXPECT_EQ(decode_e8m0(static_cast<std::uint8_t>(code)), power) << code;
  }
  EXPECT_TRUE(std::isnan(decode_e8m0(255)));
}

}  // namespace
}  // namespace qpn8
