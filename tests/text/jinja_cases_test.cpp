#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "qpn8/error.hpp"
#include "support/shared_data.hpp"
#include "text/chat_template.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// What tools/make_jinja_cases.py recorded, with the template and the variables filled in.
std::vector<Json> recorded_cases() {
  const std::filesystem::path folder = test::data() / "text";
  const Json variables = Json::parse(read(folder / "jinja" / "variables.json"));
  const Json conversations = Json::parse(read(folder / "jinja" / "conversations.json"));
  std::vector<Json> cases;
  std::ifstream in(folder / "jinja_cases.jsonl");
  for (std::string line; std::getline(in, line);) {
    Json row = Json::parse(line);
    if (row.contains("file")) {
      row["template"] = read(folder / "jinja" / "templates" / row["file"].get<std::string>());
      row["variables"] = conversations[row["conversation"].get<std::string>()];
    } else {
      row["variables"] = variables;
    }
    cases.push_back(std::move(row));
  }
  return cases;
}

TEST(JinjaCases, EveryTemplateGivesWhatJinja2RecordedAndFailsWhereItFails) {
  const std::vector<Json> cases = recorded_cases();
  ASSERT_GT(cases.size(), 300U);
  for (const Json& row : cases) {
    SCOPED_TRACE(row["template"].get<std::string>() + "\nconversation " + row.value("conversation", "-"));
    try {
      const std::string text = ChatTemplate(row["template"]).render(row["variables"]);
      ASSERT_TRUE(row.contains("text")) << "rendered " << text << " where Jinja2 fails";
      EXPECT_EQ(text, row["text"].get<std::string>());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::bad_value);
      EXPECT_FALSE(row.contains("text")) << error.what();
      if (row.contains("error")) {
        EXPECT_NE(std::string(error.what()).find(row["error"].get<std::string>()), std::string::npos) << error.what();
      }
    }
  }
}

// A recorded row names its template; the bundled model's is in the repository, Qwen3's in its tokenizer's folder.
std::string golden_template(const Json& row) {
  const auto name = row["template"].get<std::string>();
  if (name == "wordmath") return read(test::repository() / "models" / "wordmath-11m" / "chat_template.jinja");
  if (name != "qwen3") return row["template_text"];
  const auto config = test::shared_data("tokenizers/qwen3/tokenizer_config.json");
  return Json::parse(read(config.value()))["chat_template"];
}

TEST(JinjaCases, EveryRenderingOfTheChatGoldenReproduces) {
  const auto golden = test::shared_data("tokenizers/chat_golden.jsonl");
  if (!golden) GTEST_SKIP() << "needs ../shared/tokenizers, which is not here";
  std::ifstream in(*golden);
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    SCOPED_TRACE(line);
    const Json row = Json::parse(line);
    Json variables = row["kwargs"];
    variables["messages"] = row["messages"];
    variables["add_generation_prompt"] = row["add_generation_prompt"];
    try {
      EXPECT_EQ(ChatTemplate(golden_template(row)).render(variables), row.value("text", "an error"));
    } catch (const Error& error) {
      ASSERT_TRUE(row.contains("error")) << error.what();
      EXPECT_NE(std::string(error.what()).find(row["error"].get<std::string>()), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(count, 62);
}

}  // namespace
}  // namespace qpn8
