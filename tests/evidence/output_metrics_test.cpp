#include "evidence/output_metrics.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace qpn8 {
namespace {

using Tokens = std::vector<std::int32_t>;

TEST(RepeatedFourGrams, IsOneMinusDistinctOverTotal) {
  EXPECT_EQ(repeated_4gram_rate(Tokens{}), 0.0);
  EXPECT_EQ(repeated_4gram_rate(Tokens{7, 7, 7}), 0.0);
  EXPECT_EQ(repeated_4gram_rate(Tokens{1, 2, 3, 4, 5, 6}), 0.0);
  EXPECT_EQ(repeated_4gram_rate(Tokens{7, 7, 7, 7, 7}), 0.5);
  // 1234 2341 3412 4123 1234: four distinct of five
  EXPECT_DOUBLE_EQ(repeated_4gram_rate(Tokens{1, 2, 3, 4, 1, 2, 3, 4}), 1.0 - 4.0 / 5.0);
}

TEST(OddCharacters, AreCountedInUtf8) {
  EXPECT_EQ(count_replacement_chars("a\xEF\xBF\xBD\xEF\xBF\xBD b \xEF\xBF\xBC"), 2);
  EXPECT_EQ(count_replacement_chars(""), 0);
  EXPECT_EQ(count_nul_chars(std::string("a\0b\0", 4)), 2);
  EXPECT_EQ(count_nul_chars("\\0 0"), 0);
}

TEST(TokenHash, IsTheSha256OfTheDecimalIdsJoinedByCommas) {
  // Python: hashlib.sha256(b"1,22,333").hexdigest()
  EXPECT_EQ(token_hash(Tokens{}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(token_hash(Tokens{7}), "7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451");
  EXPECT_EQ(token_hash(Tokens{1, 22, 333}), "8915516745284e69425d3f566025a855f5a5718d6d44f09451fb19d0f61fc185");
}

TEST(FirstDivergence, IsTheFirstPositionThatDiffersALongerTailIncluded) {
  EXPECT_EQ(first_divergence(Tokens{1, 2, 3}, Tokens{1, 2, 3}), std::nullopt);
  EXPECT_EQ(first_divergence(Tokens{1, 2, 3}, Tokens{1, 9, 3}), 1);
  EXPECT_EQ(first_divergence(Tokens{1, 2}, Tokens{1, 2, 3}), 2);
  EXPECT_EQ(first_divergence(Tokens{1, 2, 3}, Tokens{}), 0);
  EXPECT_EQ(first_divergence(Tokens{}, Tokens{}), std::nullopt);
}

}  // namespace
}  // namespace qpn8
