#include "base/json_view.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/json_file.hpp"
#include "support/error_of.hpp"

namespace qpn8 {
namespace {

using test::error_of;

TEST(JsonView, EveryFaultNamesTheFileTheKeyTheValueAndWhatIsExpected) {
  const nlohmann::json json = parse_json(R"({"a": {"b": [1, "x", 1.5, 18446744073709551615]}, "t": true})", "f");
  const JsonView root(json, "f.json");
  const auto list = root["a"]["b"].items();
  EXPECT_EQ(error_of([&] { root["a"].text(); }), "f.json: a is an object, expected a string");
  EXPECT_EQ(error_of([&] { root["none"].flag(); }), "f.json: none is missing, expected true or false");
  EXPECT_EQ(error_of([&] { root["a"]["b"]["c"].flag(); }), "f.json: a.b is an array, expected an object");
  EXPECT_EQ(error_of([&] { list[1].number(); }), "f.json: a.b[1] is \"x\", expected a number");
  EXPECT_EQ(error_of([&] { list[0].integer(2, 5); }), "f.json: a.b[0] is 1, expected an integer of at least 2");
  EXPECT_EQ(error_of([&] { list[2].integer(0, 5); }), "f.json: a.b[2] is 1.5, expected an integer of at least 0");
  EXPECT_EQ(error_of([&] { list[3].integer(0, INT64_MAX); }),
            "f.json: a.b[3] is 18446744073709551615, expected at most 9223372036854775807");
  EXPECT_EQ(error_of([&] { root.items(); }), "f.json: is an object, expected an array");
}

TEST(JsonView, NullCountsAsAbsent) {
  const nlohmann::json json = parse_json(R"({"a": null, "i": 7, "s": "x", "f": false, "n": 0.5})", "f");
  const JsonView root(json, "f.json");
  for (const char* key : {"a", "none"}) {
    EXPECT_TRUE(root[key].is_null());
    EXPECT_EQ(root[key].optional_text(), std::nullopt);
    EXPECT_EQ(root[key].text_or("y"), "y");
    EXPECT_TRUE(root[key].flag_or(true));
    EXPECT_EQ(root[key].optional_integer(0, 9), std::nullopt);
    EXPECT_EQ(root[key].optional_number(), std::nullopt);
  }
  EXPECT_EQ(root["i"].optional_integer(0, 9), 7);
  EXPECT_EQ(root["s"].text_or("y"), "x");
  EXPECT_FALSE(root["f"].flag_or(true));
  EXPECT_EQ(root["n"].optional_number(), 0.5);
}

TEST(JsonView, AKeyFromTheFileCannotBreakTheLine) {
  const nlohmann::json json = parse_json(R"({"a\nb": 1})", "f");
  EXPECT_EQ(error_of([&] { JsonView(json, "f.json")["a\nb"].text(); }), "f.json: a\\x0ab is 1, expected a string");
}

}  // namespace
}  // namespace qpn8
