#include "text/chat_template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "qpn8/error.hpp"
#include "support/error_of.hpp"
#include "support/expect_error.hpp"
#include "support/temporary_folder.hpp"

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
  const test::TemporaryFolder folder;
  folder.write("chat_template.jinja", "from the file");
  folder.write("tokenizer_config.json", R"({"chat_template": "from the config"})");
  EXPECT_EQ(load_chat_template(folder.path())->render(Json::object()), "from the file");
}

TEST(LoadChatTemplate, TakesTheTextOfTheTokenizersConfig) {
  const test::TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "{{ bos_token }}!"})");
  EXPECT_EQ(load_chat_template(folder.path())->render({{"bos_token", "<s>"}}), "<s>!");
}

TEST(LoadChatTemplate, TakesTheDefaultOfSeveralNamedTemplates) {
  const test::TemporaryFolder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]})");
  EXPECT_EQ(load_chat_template(folder.path())->render(Json::object()), "d");
}

TEST(LoadChatTemplate, IsEmptyWithoutATemplate) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(load_chat_template(folder.path()));
  folder.write("tokenizer_config.json", R"({"model_max_length": 10, "chat_template": null})");
  EXPECT_FALSE(load_chat_template(folder.path()));
}

TEST(LoadChatTemplate, NamesAFileThatIsMalformed) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "tokenizer_config.json").string();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", ":1:1: not valid JSON: unexpected end of input; expected string literal"},
      {"[]", ": is an array, expected an object"},
      {R"({"chat_template": 5})",
       ": chat_template is 5, expected a string, or a list with a template named \"default\""},
      {R"({"chat_template": [{"name": "x"}]})",
       ": chat_template is an array, expected a string, or a list with a template named \"default\""},
      {R"({"bos_token": "a", "bos_token": "b"})", ":1:30: key \"bos_token\" stands twice in one object"},
      {std::string("{}\0{}", 5), ":1:3: a NUL byte, which JSON text cannot hold"},
      {std::string(1'000'000, '['), ":1:65: nested more than 64 deep"},
  };
  for (const auto& [text, message] : cases) {
    folder.write("tokenizer_config.json", text);
    EXPECT_EQ(test::error_of([&] { load_chat_template(folder.path()); }), file + message);
    if (!message.starts_with(": chat")) continue;
    EXPECT_EQ(test::error_of([&] { load_template_tokens(folder.path()); }), file + message);
  }
}

TEST(LoadChatTemplate, AFifoOrAFolderInAFilesPlaceIsNamedAndNotWaitedFor) {
  for (const char* name : {"chat_template.jinja", "tokenizer_config.json"}) {
    const test::TemporaryFolder folder;
    folder.make_fifo(name);
    const std::string message = (folder / name).string() + ": is not a regular file";
    EXPECT_EQ(test::error_of([&] { load_chat_template(folder.path()); }), message);
    std::filesystem::remove(folder / name);
    std::filesystem::create_directory(folder / name);
    EXPECT_EQ(test::error_of([&] { load_chat_template(folder.path()); }), message);
  }
}

TEST(LoadChatTemplate, ALinkToNowhereOrToItselfIsNamedAndNotTakenForAbsent) {
  for (const char* name : {"chat_template.jinja", "tokenizer_config.json"}) {
    for (const char* target : {"nowhere", name}) {
      const test::TemporaryFolder folder;
      std::filesystem::create_symlink(target, folder / name);
      EXPECT_THAT(test::error_of([&] { load_chat_template(folder.path()); }),
                  testing::StartsWith((folder / name).string() + ": "));
    }
  }
}

TEST(LoadChatTemplate, NamesTheFileInTheTemplatesErrors) {
  const test::TemporaryFolder folder;
  folder.write("chat_template.jinja", "\n{{ x.y }}");
  const auto loaded = load_chat_template(folder.path());
  test::expect_error(
      Error::bad_value, [&] { loaded->render(Json::object()); }, "chat_template.jinja:2: 'x' is undefined");
}

TEST(LoadTemplateTokens, ReadsTextsAndObjectsAndFillsUpFromTheMap) {
  const test::TemporaryFolder folder;
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "pad_token": null})");
  folder.write("special_tokens_map.json", R"({"bos_token": "<other>", "pad_token": "<pad>"})");
  EXPECT_EQ(load_template_tokens(folder.path()),
            Json::parse(R"({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"})"));
}

TEST(LoadTemplateTokens, IsEmptyWithoutFiles) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(load_template_tokens(folder.path()), Json::object());
}

}  // namespace
}  // namespace qpn8
