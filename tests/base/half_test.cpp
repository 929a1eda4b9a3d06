#include "qpn8/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace qpn8 {
namespace {

// The value of binary16 bits by the definition, in double arithmetic.
double half_by_definition(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0x1f) return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryBitPatternHasItsDefinedValueAndRoundTrips) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const double expected = half_by_definition(half.bits);
    const float value = to_float(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << std::hex << bits;
      EXPECT_TRUE(std::isnan(to_float(to_half(value)))) << std::hex << bits;
      continue;
    }
    EXPECT_EQ(value, expected) << std::hex << bits;
    EXPECT_EQ(to_half(value).bits, half.bits) << std::hex << bits;
  }
}

TEST(Half, MidpointsRoundToEvenAndTheirNeighboursToTheNearest) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const double low = half_by_definition(static_cast<std::uint16_t>(bits));
    const double high = half_by_definition(static_cast<std::uint16_t>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    const int even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(to_half(middle).bits, even) << std::hex << bits;
    EXPECT_EQ(to_half(std::nextafter(middle, 0.0F)).bits, bits) << std::hex << bits;
    EXPECT_EQ(to_half(std::nextafter(middle, 1e9F)).bits, bits + 1) << std::hex << bits;
  }
}

TEST(Half, OverflowGivesInfinity) {
  EXPECT_EQ(to_half(65519.996F).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0F).bits, 0x7c00);
  EXPECT_EQ(to_half(-1e30F).bits, 0xfc00);
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(to_bfloat16(1.0F).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3f808000U)).bits, 0x3f80);  // midpoint, even below
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3f818000U)).bits, 0x3f82);  // midpoint, even above
  EXPECT_EQ(to_bfloat16(std::bit_cast<float>(0x3f808001U)).bits, 0x3f81);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7f800001U)))));
}

}  // namespace
}  // namespace qpn8
