#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "engine/engine_options.hpp"
#include "qpn8/error.hpp"
#include "support/expect_error.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Json parse(const std::vector<std::string>& args) { return parse_engine_args(args); }

TEST(EngineArgs, EveryRowOfTheCasesHolds) {
  std::ifstream file(test::data() / "cases/engine_args.jsonl");
  ASSERT_TRUE(file);
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const auto row = Json::parse(line);
    const auto args = row["args"].get<std::vector<std::string>>();
    if (row.contains("error")) {
      EXPECT_THROW(parse(args), Error) << line;
    } else if (row.contains("error_at_engine")) {
      EXPECT_THROW(EngineOptions{}.apply(parse(args)), Error) << line;
    } else {
      EXPECT_EQ(parse(args), row["value"]) << line;
    }
  }
  EXPECT_EQ(rows, 14);
}

TEST(EngineArgs, ValuesKeepTheirTypes) {
  EXPECT_EQ(parse({"a=TRUE", "b=fAlSe", "c=NONE", "d=+4", "e=-0.5", "f=1e-3", "g=1.0"}),
            Json::parse(R"({"a": true, "b": false, "c": null, "d": 4, "e": -0.5, "f": 0.001, "g": 1.0})"));
  EXPECT_TRUE(parse({"g=1.0"})["g"].is_number_float());
  EXPECT_EQ(parse({"a=nan", "b=inf", "c=1 ", "d=0x10", "e=+", "f=+-3", "g=truer"}),
            Json::parse(R"({"a": "nan", "b": "inf", "c": "1 ", "d": "0x10", "e": "+", "f": "+-3", "g": "truer"})"));
}

TEST(EngineArgs, AKeyWithDashesIsTheKeyWithUnderscores) {
  EXPECT_EQ(parse({"max-model-len=1", "max_model_len=2"}), Json::parse(R"({"max_model_len": 2})"));
}

TEST(EngineArgs, AnIntegerBeyond64BitsIsANumber) {
  EXPECT_EQ(parse({"a=100000000000000000000"})["a"].get<double>(), 1e20);
}

TEST(EngineArgs, ErrorsQuoteTheArgumentOnOneLine) {
  test::expect_error(
      Error::bad_argument, [] { parse({"no\nvalue"}); }, AllOf(HasSubstr(R"("no\x0avalue")"), HasSubstr("KEY=VALUE")));
  test::expect_error(
      Error::bad_argument, [] { parse({"bad={\"a\":}"}); }, ":1:6: not valid JSON");
  test::expect_error(
      Error::bad_argument, [] { parse({"\xff"}); }, R"("\xff")", "KEY=VALUE");
}

TEST(EngineArgs, JsonIsBoundedInDepthAndHasNoKeyTwice) {
  test::expect_error(
      Error::bad_argument, [] { parse({"contract=" + std::string(100'000, '[')}); },
      ::testing::AllOf(::testing::StartsWith("engine argument \"contract=[["),
                       ::testing::EndsWith("nested more than 64 deep"), ::testing::SizeIs(::testing::Lt(300))));
  test::expect_error(
      Error::bad_argument, [] { parse({R"(a={"b":1,"b":2})"}); }, "key \"b\" stands twice");
}

}  // namespace
}  // namespace qpn8
