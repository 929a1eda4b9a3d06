#include "cli/tokenize.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>

#include "qpn8/error.hpp"
#include "support/error_of.hpp"
#include "support/tokenizers.hpp"

namespace qpn8::test {
namespace {

Tokenizer tokenizer() {
  nlohmann::json file = tokenizer_of({"a", "b", "<s>"});
  file["added_tokens"] = {{{"id", 2}, {"content", "<s>"}, {"special", true}}};
  file["post_processor"] = {{"type", "BertProcessing"}, {"cls", {"<s>", 2}}, {"sep", {"<s>", 2}}};
  file["decoder"] = {{"type", "Fuse"}};
  return parse(file);
}

std::string output_of(const std::string& input, const cli::TokenizeOptions& options = {}) {
  std::istringstream in(input);
  std::string out;
  cli::tokenize_lines(tokenizer(), options, in, "standard input", [&](std::string_view line) { out += line; });
  return out;
}

std::string fault_of(const std::string& input, const cli::TokenizeOptions& options = {}) {
  return error_of([&] { output_of(input, options); });
}

TEST(TokenizeLines, EncodesTextsAndDecodesIds) {
  EXPECT_EQ(output_of("{\"text\":\"ab\"}\n\n{\"ids\":[1,2]}\n{\"text\":\"\"}"),
            "{\"text\":\"ab\",\"ids\":[0,1]}\n{\"text\":\"b<s>\",\"ids\":[1,2]}\n{\"text\":\"\",\"ids\":[]}\n");
  EXPECT_EQ(output_of(""), "");
}

TEST(TokenizeLines, AddsSpecialTokensOnlyWhenAsked) {
  EXPECT_EQ(output_of(R"({"text":"a"})", {.special = true}), "{\"text\":\"a\",\"ids\":[2,0,2]}\n");
}

TEST(TokenizeLines, DecodeTakesTheIdsOfALineThatHasBoth) {
  const std::string both = R"({"text":"a","ids":[1]})";
  EXPECT_EQ(output_of(both), "{\"text\":\"a\",\"ids\":[0]}\n");
  EXPECT_EQ(output_of(both, {.decode = true}), "{\"text\":\"b\",\"ids\":[1]}\n");
}

TEST(TokenizeLines, NamesTheLineThatIsWrong) {
  const std::string line = "standard input:1: ";
  EXPECT_EQ(fault_of("{\"text\":\"a\"}\n\n{\"ids\":[3]}"),
            "standard input:3: t.json: no token has the id 3; ids are below 3");
  EXPECT_EQ(fault_of("text"), "standard input:1:2: not valid JSON: invalid literal");
  EXPECT_EQ(fault_of("[1]"), line + "is an array, expected one JSON object a line");
  EXPECT_EQ(fault_of(R"({"ids":[1],"ids":[2]})"), "standard input:1:16: key \"ids\" stands twice in one object");
  EXPECT_EQ(fault_of(std::string("{\"text\":\"a\"}\0{}", 15)),
            "standard input:1:13: a NUL byte, which JSON text cannot hold");
  EXPECT_EQ(fault_of(std::string(1'000'000, '[')), "standard input:1:65: nested more than 64 deep");
  EXPECT_EQ(fault_of("{}"), line + R"(has neither "text" nor "ids")");
  EXPECT_EQ(fault_of(R"({"text":1})"), line + R"("text" is not a string)");
  EXPECT_EQ(fault_of(R"({"text":"a"})", {.decode = true}), line + R"(has no "ids" to decode)");
  EXPECT_EQ(fault_of(R"({"ids":1})"), line + R"("ids" is not an array)");
  const std::string no_id = line + R"("ids" holds something that is no id; ids are whole numbers from 0)";
  for (const std::string id : {"-1", "1.0", "\"1\"", "2147483648", "99999999999999999999", "null"}) {
    EXPECT_EQ(fault_of("{\"ids\":[" + id + "]}"), no_id) << id;
  }
}

TEST(TokenizeLines, WritesTheLinesBeforeTheOneThatIsWrong) {
  std::istringstream in("{\"text\":\"a\"}\n{");
  std::string out;
  const auto write = [&](std::string_view line) { out += line; };
  EXPECT_THROW(cli::tokenize_lines(tokenizer(), {}, in, "standard input", write), Error);
  EXPECT_EQ(out, "{\"text\":\"a\",\"ids\":[0]}\n");
}

}  // namespace
}  // namespace qpn8::test
