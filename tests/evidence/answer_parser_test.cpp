#include "evidence/answer_parser.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/json_lines.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;
using Value = std::optional<std::int64_t>;

TEST(AnswerParser, ReadsEveryCaseOfTheCollectionRight) {
  const auto file = test::data() / "cases/answers.jsonl";
  std::ifstream stream(file);
  int cases = 0;
  for_each_json_line(stream, file.string(), [&](const Json& row, std::int64_t line) {
    const Json& value = row.at("value");
    const Value expected = value.is_null() ? Value() : Value(value.get<std::int64_t>());
    EXPECT_EQ(parse_answer(row.at("text").get<std::string>()), expected) << "line " << line << ": " << row;
    ++cases;
  });
  EXPECT_EQ(cases, 31);
}

TEST(AnswerParser, TheLastNumberIgnoresBoxes) {
  EXPECT_EQ(parse_last_number("\\boxed{10}, after 3 weeks"), 3);
  EXPECT_EQ(parse_last_number("\\boxed{12.5}"), Value());
  EXPECT_EQ(parse_last_number("\\boxed{1{,}234}"), 1234);
  EXPECT_EQ(parse_last_number("so \\boxed{42}"), 42);
}

TEST(AnswerParser, AHyphenIsNoMinusAndASpacedMinusNoSign) {
  EXPECT_EQ(parse_last_number("COVID-19"), 19);
  EXPECT_EQ(parse_last_number("(3)-5"), 5);
  EXPECT_EQ(parse_last_number("7 - 5"), 5);
  EXPECT_EQ(parse_last_number("is: -5"), -5);
  EXPECT_EQ(parse_last_number("=-5"), -5);
}

TEST(AnswerParser, CommasGroupThousandsOnlyWhereTheyCan) {
  EXPECT_EQ(parse_last_number("1,2,3"), 3);
  EXPECT_EQ(parse_last_number("3, 500"), 500);
  EXPECT_EQ(parse_last_number("in 1999,250"), 250);
  EXPECT_EQ(parse_last_number("12,345,678 in all"), 12345678);
}

TEST(AnswerParser, DecimalsThatAreNotZeroAreNoWholeNumber) {
  EXPECT_EQ(parse_last_number("costs $0.50"), Value());
  EXPECT_EQ(parse_last_number("costs $.50"), Value());
  EXPECT_EQ(parse_last_number("costs $3.00"), 3);
  EXPECT_EQ(parse_last_number("It is 3..."), 3);
}

TEST(AnswerParser, ABoxMayHoldAUnitAfterItsNumberAndNothingBeforeIt) {
  EXPECT_EQ(parse_answer("\\boxed{18 \\text{ dollars}}"), 18);
  EXPECT_EQ(parse_answer("\\boxed{\\mathbf{18}}"), 18);
  EXPECT_EQ(parse_answer("\\boxed{40\\%}"), 40);
  EXPECT_EQ(parse_answer("\\boxed{18 or 19}"), Value());
  EXPECT_EQ(parse_answer("\\boxed{x = 18}"), Value());
}

TEST(AnswerParser, TheEndsOfInt64AreReadAndOneMoreIsNoAnswer) {
  EXPECT_EQ(parse_answer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_answer("9223372036854775808"), Value());
  EXPECT_EQ(parse_answer("-9223372036854775808"), INT64_MIN);
}

TEST(AnswerParser, HostileTextsEndInNoAnswerNotInAFault) {
  for (const char* text : {"\\boxed{", "\\boxed{{{{{", "\\boxed{}}}}", "\\boxed{\\text{", "\\boxed{\\text{5}", "-", "$",
                           ".", "####", "-$", "\xE2\x88", "\\boxed{\\text{\\text{}}}"}) {
    const Value value = parse_answer(text);
    EXPECT_TRUE(!value || *value == 5) << text;
  }
}

TEST(GoldAnswer, IsWhatFollowsTheLastMarkOrTheWholeText) {
  EXPECT_EQ(parse_gold("16 - 3 = 13\n#### 13"), 13);
  EXPECT_EQ(parse_gold("#### 1,450,000"), 1450000);
  EXPECT_EQ(parse_gold("#### -10 \n"), -10);
  EXPECT_EQ(parse_gold("#### $5.00"), 5);
  EXPECT_EQ(parse_gold("72"), 72);
  EXPECT_EQ(parse_gold(72), 72);
}

TEST(GoldAnswer, ThatIsNoIntegerAsAWholeDoesNotParse) {
  for (const Json& answer :
       {Json("#### "), Json("#### about 12"), Json("#### 12 or 13"), Json("#### 1.5"), Json(""), Json("so it is 12"),
        Json(1.5), Json(nullptr), Json(Json::array({1})), Json("#### 99999999999999999999"), Json(UINT64_MAX)}) {
    EXPECT_EQ(parse_gold(answer), Value()) << answer;
  }
}

}  // namespace
}  // namespace qpn8
