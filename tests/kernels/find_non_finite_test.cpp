#include "kernels/cpu/find_non_finite.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::Strided;

TEST(FindNonFinite, TheFirstBadValueOfEveryRowIsFoundWhereverItLies) {
  const float bad[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::nanf(""),
                       -std::nanf("")};
  for_each_isa([&] {
    ThreadTeam team(2);
    for (const std::int64_t cols : {1, 16, 37}) {
      for (std::int64_t place = 0; place < cols; ++place) {
        Matrix<float> values = test::gaussian(3, cols, 1);
        values(1, place) = bad[place % 4];
        values(1, cols - 1) = bad[(place + 1) % 4];
        Strided x(values);
        std::vector<std::int32_t> found(3);
        std::vector<std::int32_t> expected(3);
        find_non_finite(x.view(), found, team);
        find_non_finite_reference(x.view(), expected);
        EXPECT_EQ(found, expected);
        EXPECT_EQ(found, (std::vector<std::int32_t>{-1, static_cast<std::int32_t>(place), -1}));
      }
    }
  });
}

TEST(FindNonFinite, EveryFiniteValueIsFinite) {
  for_each_isa([] {
    ThreadTeam team(1);
    Matrix<float> x(1, 48);
    const float limits[] = {0.0F,
                            -0.0F,
                            std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::lowest(),
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::min()};
    for (std::int64_t i = 0; i < 48; ++i) x(0, i) = limits[i % 6];
    std::vector<std::int32_t> found(1);
    find_non_finite(x.view(), found, team);
    EXPECT_EQ(found[0], -1);
  });
}

}  // namespace
}  // namespace qpn8::cpu
