#include "base/json_file.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using test::error_of;

TEST(JsonFile, ReadsEveryKindOfValue) {
  const auto json = parse_json(R"({"a": [1, -2, 3.5, true, false, null, "x\u00e9"], "b": {"c": {}}, "d": []})", "f");
  EXPECT_EQ(json, nlohmann::json::parse(R"({"a":[1,-2,3.5,true,false,null,"xé"],"b":{"c":{}},"d":[]})"));
  EXPECT_EQ(parse_json("7", "f"), 7);
}

struct BadJson {
  const char* text;
  const char* message;
};

class JsonFileRefuses : public testing::TestWithParam<BadJson> {};

TEST_P(JsonFileRefuses, WithFileLineAndColumn) {
  EXPECT_EQ(error_of([] { parse_json(GetParam().text, "f.json"); }), GetParam().message) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Texts, JsonFileRefuses,
    testing::Values(BadJson{"", "f.json:1:1: not valid JSON: unexpected end of input; expected '[', '{', or a literal"},
                    BadJson{"{\n  \"a\": 1,\n}", "f.json:3:1: not valid JSON: unexpected '}'; expected string literal"},
                    BadJson{"{\"a\": 1} x", "f.json:1:10: not valid JSON: invalid literal"},
                    BadJson{"{\"a\": 1,\n \"b\": 2, \"a\": 3}", "f.json:2:12: key \"a\" stands twice in one object"},
                    BadJson{"[NaN]", "f.json:1:2: not valid JSON: invalid literal"},
                    BadJson{"[1e999]", "f.json:1:7: not valid JSON: number overflow parsing '1e999'"},
                    BadJson{"// no comments\n1", "f.json:1:1: not valid JSON: invalid literal"}));

TEST(JsonFile, RefusesANulWhereverItStands) {
  EXPECT_EQ(error_of([] { parse_json(std::string_view("{}\n\0x", 5), "f"); }),
            "f:2:1: a NUL byte, which JSON text cannot hold");
}

TEST(JsonFile, RefusesWhatIsNotUtf8) {
  EXPECT_EQ(error_of([] { parse_json("[\"\xff\"]", "f"); }),
            "f:1:3: not valid JSON: invalid string: ill-formed UTF-8 byte");
}

TEST(JsonFile, NestingBeyondTheLimitIsAnErrorAndNeedsNoStack) {
  const std::string deep(5'000'000, '[');
  EXPECT_EQ(error_of([&] { parse_json(deep, "f"); }), "f:1:65: nested more than 64 deep");
  EXPECT_EQ(error_of([] { parse_json("[[[1]]]", "f", {.depth = 3}); }), "(no error)");
  EXPECT_EQ(error_of([] { parse_json("[[{\"a\": []}]]", "f", {.depth = 3}); }), "f:1:9: nested more than 3 deep");
}

TEST(JsonFile, TooManyValuesAndTooManyBytesAreErrors) {
  EXPECT_EQ(error_of([] { parse_json("[1,2,3]", "f", {.values = 4}); }), "(no error)");
  EXPECT_EQ(error_of([] { parse_json("[1,2,3]", "f", {.values = 3}); }), "f:1:7: more than 3 values");
  EXPECT_EQ(error_of([] { parse_json("[1,2,3]", "f", {.bytes = 6}); }), "f: is 7 bytes long, expected at most 6");
}

TEST(JsonFile, TheOrderedKindKeepsTheOrderAndTheLimits) {
  using Ordered = nlohmann::ordered_json;
  const std::string text = R"({"b":1,"a":{"z":[],"y":{}},"c":[[2],"x"]})";
  EXPECT_EQ(parse_json<Ordered>(text, "f").dump(), text);
  EXPECT_EQ(error_of([] { parse_json<Ordered>(R"({"b":1,"a":2,"b":3})", "f"); }),
            "f:1:16: key \"b\" stands twice in one object");
  EXPECT_EQ(error_of([] { parse_json<Ordered>(std::string(5'000'000, '['), "f"); }),
            "f:1:65: nested more than 64 deep");
}

TEST(JsonFile, ManyKeysInOneObjectTakeNoQuadraticTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"" + std::to_string(i) + "\":0,";
  text += "\"end\":0}";
  EXPECT_EQ(parse_json<nlohmann::ordered_json>(text, "f").size(), 200'001U);
}

TEST(JsonFile, WhatMayBeAnythingIsJsonWithinTheLimitsOrNothing) {
  EXPECT_EQ(try_parse_json("[1]"), nlohmann::ordered_json::array({1}));
  EXPECT_EQ(try_parse_json("<html>"), std::nullopt);
  EXPECT_EQ(try_parse_json(std::string(1'000'000, '[')), std::nullopt);
}

TEST(JsonFile, AValueInAMessageIsShort) {
  EXPECT_EQ(describe(nlohmann::json::parse("[[1]]")), "an array");
  EXPECT_EQ(describe(nlohmann::json::parse("{}")), "an object");
  EXPECT_EQ(describe(nlohmann::json::parse("1.5")), "1.5");
  EXPECT_EQ(describe(nlohmann::json::parse("null")), "null");
  EXPECT_EQ(describe(nlohmann::ordered_json("a\nb")), "\"a\\x0ab\"");
  EXPECT_EQ(describe(nlohmann::ordered_json(std::string("\xff"))), "\"\\xff\"");
}

TEST(JsonFile, NamesTheFileThatIsMissing) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { read_json_file(folder / "config.json"); }),
            (folder / "config.json").string() + ": No such file or directory");
  folder.write("config.json", "[1]");
  EXPECT_EQ(read_json_file(folder / "config.json"), nlohmann::json::array({1}));
}

TEST(JsonFile, MessagesAreOneLineWhateverTheTextHolds) {
  const std::string message = error_of([] { parse_json("{\"a\\n\": 1, \"a\\n\": 2}", "f"); });
  EXPECT_EQ(message, "f:1:16: key \"a\\x0a\" stands twice in one object");
}

}  // namespace
}  // namespace qpn8
