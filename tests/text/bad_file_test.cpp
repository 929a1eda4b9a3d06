#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "qpn8/error.hpp"
#include "support/error_of.hpp"
#include "support/tokenizers.hpp"

namespace qpn8::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Refusal {
  std::optional<Error::Kind> kind;
  std::string message;
};

Refusal refusal_of(const std::string& text) {
  std::optional<Error::Kind> kind;
  std::string message = error_of([&] { Tokenizer::parse(text, "dir/t.json"); }, &kind);
  return {kind, message};
}

struct Case {
  std::string patch;    // RFC 7386, applied to the legal file below
  std::string message;  // the beginning, after "dir/t.json: "
};

json legal_file() {
  json file = tokenizer_of({"a", "b", "ab", "<s>"});
  file["model"]["merges"] = json::parse(R"([["a", "b"]])");
  file["added_tokens"] = {{{"id", 3}, {"content", "<s>"}, {"special", true}}};
  return file;
}

void expect_refusals(Error::Kind kind, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    json file = legal_file();
    file.merge_patch(json::parse(one.patch));
    const Refusal refusal = refusal_of(file.dump());
    EXPECT_EQ(refusal.kind, kind) << one.patch << ": " << refusal.message;
    EXPECT_THAT(refusal.message, AllOf(StartsWith("dir/t.json: " + one.message), Not(HasSubstr("\n")))) << one.patch;
  }
}

TEST(BadTokenizerFile, TheLegalOneIsAccepted) { EXPECT_EQ(refusal_of(legal_file().dump()).message, "(no error)"); }

TEST(BadTokenizerFile, ThatIsMissingOrNoJsonIsNamed) {
  EXPECT_THROW(Tokenizer(data() / "no_such_file.json"), Error);
  for (const std::string text : {"", "{", "\"\xFF\"", "{\"model\": \n tru", "[1,]"}) {
    const Refusal refusal = refusal_of(text);
    EXPECT_EQ(refusal.kind, Error::bad_file) << text;
    EXPECT_THAT(refusal.message,
                AllOf(StartsWith("dir/t.json:"), HasSubstr(": not valid JSON: "), Not(HasSubstr("\n"))));
  }
  EXPECT_EQ(refusal_of("[]").message, "dir/t.json: is an array, expected an object");
}

TEST(BadTokenizerFile, NestedWithoutEndDoesNotExhaustTheStack) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_EQ(refusal_of(R"({"model": )" + deep + "}").kind, Error::bad_file);
  std::string sequences = R"({"type": "NFC"})";
  for (int i = 0; i < 20; ++i) {
    sequences.insert(0, R"({"type": "Sequence", "normalizers": [)");
    sequences += "]}";
  }
  json file = legal_file();
  file["normalizer"] = json::parse(sequences);
  EXPECT_THAT(refusal_of(file.dump()).message, HasSubstr("Sequence components are nested deeper than 16"));
}

TEST(BadTokenizerFile, DataBehindANulAndKeysThatStandTwiceAreRefused) {
  const std::string text = legal_file().dump();
  const std::string nul = text + std::string("\0{}", 3);
  EXPECT_EQ(refusal_of(nul).message,
            "dir/t.json:1:" + std::to_string(text.size() + 1) + ": a NUL byte, which JSON text cannot hold");
  EXPECT_EQ(refusal_of(R"({"model": 1, "model": 2})").message,
            "dir/t.json:1:20: key \"model\" stands twice in one object");
}

TEST(BadTokenizerFile, WithABadVocabularyNamesTheToken) {
  expect_refusals(
      Error::bad_file,
      {{R"({"model": null})", "model is missing, expected an object"},
       {R"({"model": []})", "model is an array, expected an object"},
       {R"({"model": {"vocab": null}})", "model.vocab: is not an object"},
       {R"({"model": {"vocab": {"a": -1}}})", R"(model.vocab["a"] is -1, expected an integer of at least 0)"},
       {R"({"model": {"vocab": {"a": 4194304}}})", R"(model.vocab["a"] is 4194304, expected at most 4194303)"},
       {R"({"model": {"vocab": {"a": 18446744073709551615}}})",
        R"(model.vocab["a"] is 18446744073709551615, expected at most)"},
       {R"({"model": {"vocab": {"a": 1.5}}})", R"(model.vocab["a"] is 1.5, expected an integer)"},
       {R"({"model": {"vocab": {"a": "0"}}})", R"(model.vocab["a"] is "0", expected an integer)"},
       {R"({"model": {"vocab": {"b": 0}}})", R"(model.vocab["b"]: has the id 0 that "a" has already)"},
       {R"({"model": {"vocab": {"c\nd": 0}}})", R"(model.vocab["c\x0ad"]: has the id 0)"}});
}

TEST(BadTokenizerFile, WithBadMergesNamesTheMerge) {
  expect_refusals(
      Error::bad_file,
      {{R"({"model": {"merges": null}})", "model.merges: is not an array"},
       {R"({"model": {"merges": {"a": "b"}}})", "model.merges: is not an array"},
       {R"({"model": {"merges": ["a b", "ab"]}})", "model.merges[1]: is neither"},
       {R"({"model": {"merges": ["a b c"]}})", "model.merges[0]: is neither"},
       {R"({"model": {"merges": [["a"]]}})", "model.merges[0]: is neither"},
       {R"({"model": {"merges": [["a", 1]]}})", "model.merges[0]: is neither"},
       {R"({"model": {"merges": [7]}})", "model.merges[0]: is neither"},
       {R"({"model": {"merges": [["a", "x"]]}})", R"(model.merges[0]: names "x", which is not in model.vocab)"},
       {R"({"model": {"merges": [["b", "a"]]}})", R"(model.merges[0]: names "ba", which is not in model.vocab)"},
       {R"({"model": {"continuing_subword_prefix": "##"}})", R"(model.merges[0]: "b" is shorter than)"}});
}

TEST(BadTokenizerFile, WithBadAddedTokensNamesThem) {
  expect_refusals(Error::bad_file, {{R"({"added_tokens": {}})", "added_tokens is an object, expected an array"},
                                    {R"({"added_tokens": [7]})", "added_tokens[0] is 7, expected an object"},
                                    {R"({"added_tokens": [{"content": "x"}]})", "added_tokens[0].id is missing"},
                                    {R"({"added_tokens": [{"id": 9}]})", "added_tokens[0].content is missing"},
                                    {R"({"added_tokens": [{"id": -9, "content": "x"}]})", "added_tokens[0].id is -9"},
                                    {R"({"added_tokens": [{"id": 9, "content": "x", "lstrip": 1}]})",
                                     "added_tokens[0].lstrip is 1, expected true or false"},
                                    {R"({"added_tokens": [{"id": 9, "content": "a"}]})",
                                     R"(added_tokens[0]: "a" has the id 9, but 0 in model.vocab)"},
                                    {R"({"added_tokens": [{"id": 0, "content": "x"}]})",
                                     R"(added_tokens[0]: "x" has the id 0, which is "a" in)"},
                                    {R"({"added_tokens": [{"id": 9, "content": "x"}, {"id": 9, "content": "y"}]})",
                                     R"(added_tokens[1]: has the id 9 of "x")"},
                                    {R"({"added_tokens": [{"id": 9, "content": "x"}, {"id": 8, "content": "x"}]})",
                                     R"(added_tokens[1]: "x" is listed twice)"}});
}

TEST(BadTokenizerFile, WithABadComponentNamesTheKey) {
  expect_refusals(
      Error::bad_file,
      {{R"({"normalizer": 7})", "normalizer is 7, expected an object"},
       {R"({"normalizer": {}})", "normalizer.type is missing, expected a string"},
       {R"({"normalizer": {"type": "Sequence"}})", "normalizer.normalizers is missing, expected an array"},
       {R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend"}]}})",
        "normalizer.normalizers[0].prepend is missing"},
       {R"({"normalizer": {"type": "Replace", "pattern": {}, "content": ""}})", "normalizer.pattern: has neither"},
       {R"({"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": ""}})",
        "normalizer.pattern.String: is empty"},
       {R"({"normalizer": {"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""}})",
        R"(normalizer.pattern.Regex: the regular expression "(a" does not compile: missing closing parenthesis)"},
       {R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Kept"}})",
        R"(pre_tokenizer.behavior: is "Kept"; Isolated, Removed)"},
       {R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "ab"}})",
        R"(pre_tokenizer.replacement: is "ab"; one)"},
       {R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"}})",
        R"(pre_tokenizer.prepend_scheme: is "last"; "always")"},
       {R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first",
            "add_prefix_space": false}})",
        R"(pre_tokenizer.prepend_scheme: is "first", which contradicts add_prefix_space)"},
       {R"({"decoder": {"type": "Strip", "content": "", "start": 0, "stop": 0}})", R"(decoder.content: is ""; one)"},
       {R"({"decoder": {"type": "Strip", "content": "a", "start": -1, "stop": 0}})", "decoder.start is -1"}});
}

TEST(BadTokenizerFile, WithABadTemplateNamesThePiece) {
  const auto with_single = [](const std::string& single) {
    return R"({"post_processor": {"type": "TemplateProcessing", "special_tokens": {"s": {"ids": [3]}}, "single": )" +
           single + "}}";
  };
  expect_refusals(
      Error::bad_file,
      {{with_single("null"), "post_processor.single is missing"},
       {with_single(R"([{"Other": {}}])"), "post_processor.single[0].SpecialToken is missing"},
       {with_single(R"([{"SpecialToken": {"id": "t"}}])"),
        R"(post_processor.single[0].SpecialToken.id: "t" is not in)"},
       {with_single(R"([{"Sequence": {"id": "B"}}])"), "post_processor.single[0].Sequence.id: a template for one"},
       {R"({"post_processor": {"type": "TemplateProcessing", "special_tokens": {"s": {"ids": [4]}},
            "single": [{"SpecialToken": {"id": "s"}}, {"Sequence": {"id": "A"}}]}})",
        "post_processor.special_tokens.s.ids[0] is 4, expected at most 3"},
       {R"({"post_processor": {"type": "BertProcessing", "cls": ["<s>"], "sep": ["<s>", 3]}})",
        "post_processor.cls: is not a pair"}});
  expect_refusals(Error::unsupported, {{with_single("[]"), "post_processor.single: a template without its sequence"},
                                       {with_single(R"([{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}])"),
                                        "post_processor.single[1].Sequence: a template that repeats its sequence"}});
}

TEST(UnsupportedTokenizer, NamesTheComponentAndTheFile) {
  expect_refusals(
      Error::unsupported,
      {{R"({"model": {"type": "Unigram"}})", R"(model: the model "Unigram" is not supported; BPE is)"},
       {R"({"model": {"dropout": 0.1}})", "model.dropout: dropout makes encodings random"},
       {R"({"normalizer": {"type": "Precompiled"}})", R"(normalizer: the component "Precompiled" is not supported)"},
       {R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Nmt"}]}})",
        R"(normalizer.normalizers[0]: the component "Nmt" is not supported)"},
       {R"({"pre_tokenizer": {"type": "BertPreTokenizer"}})", R"(pre_tokenizer: the component "BertPreTokenizer")"},
       {R"({"post_processor": {"type": "Other"}})", R"(post_processor: the component "Other" is not supported)"},
       {R"({"decoder": {"type": "WordPiece"}})", R"(decoder: the component "WordPiece" is not supported)"}});
}

}  // namespace
}  // namespace qpn8::test
