#include "base/text_table.hpp"

#include <gtest/gtest.h>

namespace qpn8 {
namespace {

TEST(TextTable, ColumnsAreAsWideAsTheirWidestCellAndTheLastIsNotPadded) {
  EXPECT_EQ(text_table({{"NAME", "N"}, {"a", "12345"}, {"longer", "1"}}),
            "NAME    N\n"
            "a       12345\n"
            "longer  1\n");
}

TEST(TextTable, NumbersCanStandRight) {
  EXPECT_EQ(text_table({{"NAME", "N", "X"}, {"a", "12345", "y"}}, {Align::left, Align::right}),
            "NAME      N  X\n"
            "a     12345  y\n");
  EXPECT_EQ(text_table({}), "");
}

}  // namespace
}  // namespace qpn8
