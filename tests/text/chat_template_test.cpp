#include "text/chat_template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>
#include <vector>

#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The message of the Error::bad_value that compiling or rendering ends in.
std::string failure(const std::string& source, const Json& variables = Json::object()) {
  try {
    const std::string text = ChatTemplate(source, "t.jinja").render(variables);
    ADD_FAILURE() << source << " gave " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::bad_value);
    return error.what();
  }
  return "";
}

std::string rendered(const std::string& source, const Json& variables = Json::object()) {
  return ChatTemplate(source, "t.jinja").render(variables);
}

/// A folder that is removed at the end of the test.
class Folder {
 public:
  Folder() : path_(std::filesystem::path(::testing::TempDir()) / unique_name()) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }

 private:
  static std::string unique_name() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    return std::string("qpn8_") + info->test_suite_name() + "_" + info->name();
  }
  std::filesystem::path path_;
};

TEST(ChatTemplateErrors, RaiseExceptionFailsTheRequestWithItsMessageAndLine) {
  EXPECT_EQ(failure("a\n{% if true %}\n{{ raise_exception('no user turn') }}{% endif %}"), "t.jinja:3: no user turn");
}

TEST(ChatTemplateErrors, NothingOfTheOutputSurvivesAnError) {
  EXPECT_THROW(rendered("prompt {{ raise_exception('stop') }}"), Error);
}

TEST(ChatTemplateErrors, ASyntaxErrorNamesTheTemplateAndTheLine) {
  EXPECT_EQ(failure("a\nb {{ 1 + }}"), "t.jinja:2: unexpected 'end of print statement'");
  EXPECT_THAT(failure("{% if x %}\n"), StartsWith("t.jinja:1: Unexpected end of template."));
}

TEST(ChatTemplateErrors, UnclosedTagsAreNamed) {
  EXPECT_THAT(failure("{% for x in y %}{% if x %}"), HasSubstr("'elif' or 'else' or 'endif'"));
  EXPECT_THAT(failure("{% for x in y %}{% if x %}"), HasSubstr("needs to be closed is 'if'"));
  EXPECT_THAT(failure("{# never closed"), HasSubstr("Missing end of comment tag"));
  EXPECT_THAT(failure("{% raw %} never closed"), HasSubstr("Missing end of raw directive"));
  EXPECT_THAT(failure("{{ 'never closed }}"), HasSubstr("unexpected char"));
  EXPECT_THAT(failure("{{ (1, 2 }}"), HasSubstr("unexpected '}', expected ')'"));
}

TEST(ChatTemplateErrors, WhatIsUnknownIsNamed) {
  EXPECT_THAT(failure("{{ 1 | rot13 }}"), HasSubstr("No filter named 'rot13'"));
  EXPECT_THAT(failure("{{ 1 is prime }}"), HasSubstr("No test named 'prime'"));
  EXPECT_THAT(failure("{{ [1] | map('rot13') | list }}"), HasSubstr("No filter named 'rot13'"));
  EXPECT_THAT(failure("{{ [1] | select('prime') | list }}"), HasSubstr("No test named 'prime'"));
  EXPECT_THAT(failure("{{ 'x'.encode('utf-8') }}"), HasSubstr("'str object' has no attribute 'encode'"));
  EXPECT_THAT(failure("{% do 1 %}"), HasSubstr("unknown tag 'do'"));
  EXPECT_THAT(failure("{% include 'other' %}"), HasSubstr("'include' is not supported"));
  EXPECT_THAT(failure("{{ [1, 2] | random }}"), HasSubstr("'random' is not supported"));
}

TEST(ChatTemplateErrors, AnUnknownFilterBehindAConditionFailsOnlyWhenItIsUsed) {
  EXPECT_EQ(rendered("{% if x is defined %}{{ x | rot13 }}{% endif %}ok"), "ok");
  EXPECT_THAT(failure("{% if x is defined %}{{ x | rot13 }}{% endif %}", {{"x", 1}}), HasSubstr("'rot13'"));
}

TEST(ChatTemplateErrors, UndefinedValuesFailInJinjasWords) {
  EXPECT_EQ(failure("{{ x.y }}"), "t.jinja:1: 'x' is undefined");
  EXPECT_EQ(failure("{{ m.a.b }}", {{"m", Json::object()}}), "t.jinja:1: 'dict object' has no attribute 'a'");
  EXPECT_EQ(failure("{{ m[3].b }}", {{"m", Json::array()}}), "t.jinja:1: list object has no element 3");
}

TEST(ChatTemplateErrors, TheSandboxRefusesMethodsThatChangeAValue) {
  EXPECT_EQ(failure("{{ m.append(1) }}", {{"m", Json::array()}}),
            "t.jinja:1: access to attribute 'append' of 'list' object is unsafe.");
  EXPECT_EQ(failure("{{ m.update({}) }}", {{"m", Json::object()}}),
            "t.jinja:1: access to attribute 'update' of 'dict' object is unsafe.");
  EXPECT_THAT(failure("{{ ''.__class__.__mro__ }}"), HasSubstr("'__class__' of 'str' object is unsafe"));
}

TEST(ChatTemplateErrors, TextThatIsNotUtf8IsRefused) {
  EXPECT_THAT(failure("a\xff"), HasSubstr("not UTF-8"));
  EXPECT_THAT(failure("{{ x }}", {{"x", "\xc3"}}), HasSubstr("not UTF-8"));
}

TEST(ChatTemplateErrors, VariablesHaveToBeAnObjectOf64BitIntegers) {
  EXPECT_THAT(failure("x", Json::array()), HasSubstr("not an object"));
  EXPECT_THAT(failure("x", {{"n", 18446744073709551615U}}), HasSubstr("18446744073709551615"));
}

TEST(ChatTemplate, KeepsTheOrderOfKeysInJson) {
  EXPECT_EQ(rendered("{{ t | tojson }}", Json::parse(R"({"t": {"z": 1, "a": {"y": [], "b": null}}})")),
            R"({"z": 1, "a": {"y": [], "b": null}})");
}

TEST(ChatTemplate, WritesJsonWithoutEscapesForHtml) {
  EXPECT_EQ(rendered("{{ t | tojson }}", {{"t", "<a href='x'>&\u00e9</a>"}}), "\"<a href='x'>&\u00e9</a>\"");
}

TEST(ChatTemplate, TemplateTextInAMessageStaysText) {
  EXPECT_EQ(rendered("{{ m }}", {{"m", "{{ raise_exception('x') }} {% if %}"}}), "{{ raise_exception('x') }} {% if %}");
}

TEST(ChatTemplate, VariablesHideTheBuiltInFunctions) {
  EXPECT_EQ(rendered("{{ range }}", {{"range", "mine"}}), "mine");
}

TEST(ChatTemplate, FormatsTheCurrentTime) {
  const std::string year = rendered("{{ strftime_now('%Y') }}");
  ASSERT_EQ(year.size(), 4U);
  EXPECT_GE(std::stoi(year), 2024);
  EXPECT_EQ(rendered("{{ strftime_now('') }}"), "");
}

TEST(ChatTemplate, RendersFromSeveralThreads) {
  const ChatTemplate shared("{% for m in messages %}{{ m ~ 'x' }}{% endfor %}");
  std::vector<std::thread> threads;
  std::vector<std::string> results(4);
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 50; ++repeat)
        results[i] = shared.render({{"messages", {1, 2, static_cast<int>(i)}}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i], "1x2x" + std::to_string(i) + "x");
}

TEST(LoadChatTemplate, PrefersTheFileOfItsOwn) {
  const Folder folder;
  folder.write("chat_template.jinja", "from the file");
  folder.write("tokenizer_config.json", R"({"chat_template": "from the config"})");
  EXPECT_EQ(load_chat_template(folder.path())->render(Json::object()), "from the file");
}

TEST(LoadChatTemplate, TakesTheTextOfTheTokenizersConfig) {
  const Folder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "{{ bos_token }}!"})");
  EXPECT_EQ(load_chat_template(folder.path())->render({{"bos_token", "<s>"}}), "<s>!");
}

TEST(LoadChatTemplate, TakesTheDefaultOfSeveralNamedTemplates) {
  const Folder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]})");
  EXPECT_EQ(load_chat_template(folder.path())->render(Json::object()), "d");
}

TEST(LoadChatTemplate, IsEmptyWithoutATemplate) {
  const Folder folder;
  EXPECT_FALSE(load_chat_template(folder.path()));
  folder.write("tokenizer_config.json", R"({"model_max_length": 10, "chat_template": null})");
  EXPECT_FALSE(load_chat_template(folder.path()));
}

TEST(LoadChatTemplate, NamesAFileThatIsMalformed) {
  const Folder folder;
  for (const char* text : {"{", "[]", R"({"chat_template": 5})", R"({"chat_template": [{"name": "x"}]})"}) {
    folder.write("tokenizer_config.json", text);
    try {
      load_chat_template(folder.path());
      ADD_FAILURE() << text << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::bad_file) << text;
      EXPECT_THAT(error.what(), HasSubstr("tokenizer_config.json: ")) << text;
    }
  }
}

TEST(LoadChatTemplate, NamesTheFileInTheTemplatesErrors) {
  const Folder folder;
  folder.write("chat_template.jinja", "\n{{ x.y }}");
  const auto loaded = load_chat_template(folder.path());
  try {
    loaded->render(Json::object());
    ADD_FAILURE() << "rendered";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("chat_template.jinja:2: 'x' is undefined"));
  }
}

TEST(LoadTemplateTokens, ReadsTextsAndObjectsAndFillsUpFromTheMap) {
  const Folder folder;
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "pad_token": null})");
  folder.write("special_tokens_map.json", R"({"bos_token": "<other>", "pad_token": "<pad>"})");
  EXPECT_EQ(load_template_tokens(folder.path()),
            Json::parse(R"({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"})"));
}

TEST(LoadTemplateTokens, IsEmptyWithoutFiles) {
  const Folder folder;
  EXPECT_EQ(load_template_tokens(folder.path()), Json::object());
}

}  // namespace
}  // namespace qpn8
