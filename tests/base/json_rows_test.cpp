#include "base/json_rows.hpp"

#include <gtest/gtest.h>

#include <string>

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

TEST(JsonRows, ATableHasOneRowALineAndTheRestStaysOnItsLine) {
  const Json document = {{"passed", true},
                         {"bounds", {{"l2", 0.5}, {"list", {1, 2}}}},
                         {"rows", {{{"name", "a"}, {"n", 1}}, {{"name", "b \"q\""}, {"n", 2}}}},
                         {"gate", {{"passed", true}, {"checks", Json::array({{{"name", std::string(90, 'x')}}})}}},
                         {"notes", Json::array()}};
  EXPECT_EQ(dump_rows(document), R"({
 "passed": true,
 "bounds": {"l2":0.5,"list":[1,2]},
 "rows": [
  {"name":"a","n":1},
  {"name":"b \"q\"","n":2}
 ],
 "gate": {
  "passed": true,
  "checks": [
   {"name":")" + std::string(90, 'x') +
                                     R"("}
  ]
 },
 "notes": []
}
)");
}

TEST(JsonRows, WhatIsPrintedParsesToTheSameDocument) {
  for (const char* text : {"null", "3", "[]", "{}", R"(["a",1.5])", R"([[1],[2]])", R"({"a\nb":[{"c":[{"d":1}]}]})",
                           R"([1,{"a":2}])", R"({"x":{"y":{"z":[{}]}},"w":[[],{}]})"}) {
    const Json document = Json::parse(text);
    EXPECT_EQ(Json::parse(dump_rows(document)), document) << text;
  }
}

}  // namespace
}  // namespace qpn8
