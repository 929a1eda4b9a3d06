#include "evidence/dataset.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "qpn8/error.hpp"
#include "support/expect_error.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

std::vector<DatasetItem> read(const std::string& text) {
  std::istringstream stream(text);
  return read_dataset(stream, "data.jsonl");
}

TEST(Dataset, ReadsQuestionsWithTheirAnswers) {
  const auto items = read(
      "{\"question\": \"How many?\", \"answer\": \"2 + 2 = 4\\n#### 4\"}\n\n"
      "{\"id\": \"second\", \"question\": \"And now?\", \"answer\": 5}\n");
  ASSERT_EQ(items.size(), 2U);
  EXPECT_THAT(items[0].turns, ElementsAre("How many?"));
  EXPECT_EQ(items[0].expected, 4);
  EXPECT_EQ(items[0].id, "0");
  EXPECT_EQ(items[1].id, "second");
  EXPECT_EQ(items[1].index, 1);
  EXPECT_EQ(items[1].expected, 5);
}

TEST(Dataset, ReadsTurnsWhichNeedNoAnswer) {
  const auto items = read("{\"question_id\": 81, \"turns\": [\"Write a haiku.\", \"Now in prose.\"]}");
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].id, "81");
  EXPECT_THAT(items[0].turns, ElementsAre("Write a haiku.", "Now in prose."));
  EXPECT_FALSE(items[0].expected);
}

TEST(Dataset, NamesTheLineOfARowThatIsWrong) {
  const std::string good = "{\"question\": \"q\", \"answer\": \"#### 1\"}\n";
  const auto refuse = [&](const std::string& row, const std::string& why) {
    SCOPED_TRACE(row);
    expect_error(
        Error::bad_file, [&] { read(good + row); }, "data.jsonl:2:", why);
  };
  refuse("{\"question\": ", "not valid JSON");
  refuse("[1]", "is an array, expected one JSON object a line");
  refuse("{\"prompt\": \"q\"}", "\"question\"");
  refuse("{\"question\": 3, \"answer\": \"#### 1\"}", "\"question\"");
  refuse("{\"turns\": []}", "\"turns\"");
  refuse("{\"turns\": [1]}", "\"turns\"");
  refuse("{\"question\": \"q\"}", "\"answer\"");
  refuse("{\"question\": \"q\", \"answer\": \"about four\"}", "#### N");
  refuse("{\"turns\": [\"q\"], \"answer\": \"#### 1.5\"}", "#### N");
}

TEST(Dataset, AByteOrderMarkAndCarriageReturnsAreNoPartOfARow) {
  const auto items = read(
      "\xEF\xBB\xBF{\"id\": \"x\", \"question\": \"q\", \"answer\": \"#### 1\"}\r\n"
      "\r\n{\"id\": \"x\", \"question\": \"q\", \"answer\": \"#### 2\"}\r\n");
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].turns.front(), "q");
  EXPECT_EQ(items[1].expected, 2);
  EXPECT_EQ(items[1].index, 1) << "rows are told apart by their position; an id may stand twice";
}

TEST(Dataset, ARowThatIsNotUtf8IsNamed) {
  expect_error(
      Error::bad_file, [] { read("{\"question\": \"\xFF\", \"answer\": \"#### 1\"}"); },
      "data.jsonl:1:15: not valid JSON", "UTF-8");
}

TEST(Dataset, WithoutRowsOrWithoutAFileIsAnError) {
  expect_error(
      Error::bad_file, [] { read("\n"); }, "data.jsonl", "no rows");
  expect_error(
      Error::bad_file, [] { load_dataset("/nowhere/data.jsonl"); }, "/nowhere/data.jsonl");
  expect_error(
      Error::bad_file, [] { load_dataset("/"); }, "/");
}

TEST(Dataset, RowsAreBoundedInDepthHaveNoKeyTwiceAndNoDataBehindANul) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  expect_error(
      Error::bad_file, [&] { read(R"({"id": )" + deep + R"(, "question": "q", "answer": "#### 1"})"); },
      "data.jsonl:1:71: nested more than 64 deep");
  expect_error(
      Error::bad_file, [&] { read(R"({"turns": [)" + deep + "]}"); }, "data.jsonl:1:74: nested more than 64 deep");
  expect_error(
      Error::bad_file, [] { read(R"({"question": "q", "answer": "#### 1", "answer": "#### 2"})"); },
      "data.jsonl:1:46: key \"answer\" stands twice");
  expect_error(
      Error::bad_file, [] { read(std::string("{\"turns\": [\"q\"]}\0{}", 19)); }, "data.jsonl:1:17: a NUL byte");
  expect_error(
      Error::bad_file, [] { read(R"({"turns": [["a\nb"]]})"); }, "\"turns\" holds an array, expected texts");
}

TEST(Dataset, TheBundledProblemsLoad) {
  const auto items = load_dataset(test::repository() / "models/wordmath_test.jsonl");
  EXPECT_EQ(items.size(), 512U);
  EXPECT_EQ(items.front().expected, 49);
}

TEST(Dataset, WholeGsm8kLoadsAndEveryAnswerParses) {
  const auto file = test::shared_data("data/gsm8k_test.jsonl");
  if (!file) GTEST_SKIP() << "needs ../shared/data/gsm8k_test.jsonl, which is not here";
  const auto items = load_dataset(*file);
  EXPECT_EQ(items.size(), 1319U);
  EXPECT_EQ(items.front().expected, 18);
  EXPECT_TRUE(std::all_of(items.begin(), items.end(), [](const DatasetItem& item) { return item.expected; }));
}

std::vector<DatasetItem> numbered(std::int64_t count) {
  std::vector<DatasetItem> items;
  for (std::int64_t i = 0; i < count; ++i) items.push_back({i, std::to_string(i), {"q"}, i});
  return items;
}

std::vector<std::int64_t> indices(const std::vector<DatasetItem>& items) {
  std::vector<std::int64_t> list;
  for (const DatasetItem& item : items) list.push_back(item.index);
  return list;
}

TEST(SelectItems, TakesALimitedPartFromAStart) {
  EXPECT_THAT(indices(select_items(numbered(10), {})), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(indices(select_items(numbered(10), {.start = 7, .limit = 2, .shuffle_seed = {}})), ElementsAre(7, 8));
  EXPECT_THAT(indices(select_items(numbered(10), {.start = 8, .limit = 5, .shuffle_seed = {}})), ElementsAre(8, 9));
}

TEST(SelectItems, ShufflesBeforeItCutsAndTheSeedDecides) {
  const auto whole = indices(select_items(numbered(50), {.start = 0, .limit = {}, .shuffle_seed = 3}));
  const auto part = indices(select_items(numbered(50), {.start = 10, .limit = 5, .shuffle_seed = 3}));
  EXPECT_EQ(part, std::vector(whole.begin() + 10, whole.begin() + 15));
  EXPECT_NE(whole, indices(select_items(numbered(50), {.start = 0, .limit = {}, .shuffle_seed = 4})));
  EXPECT_THAT(whole, ::testing::UnorderedElementsAreArray(indices(numbered(50))));
}

TEST(SelectItems, RefusesAPartThatIsEmpty) {
  expect_error(
      Error::bad_argument, [] { select_items(numbered(3), {.start = 3, .limit = {}, .shuffle_seed = {}}); },
      "--start 3", "0 to 2");
  expect_error(
      Error::bad_argument, [] { select_items(numbered(3), {.start = 0, .limit = 0, .shuffle_seed = {}}); },
      "--limit 0");
}

TEST(AppendInstruction, EndsQuestionsAndLeavesConversationsAlone) {
  auto items = read("{\"question\": \"How many?\", \"answer\": \"#### 4\"}\n{\"turns\": [\"Write a haiku.\"]}\n");
  append_instruction(items, "");
  EXPECT_THAT(items[0].turns, ElementsAre("How many?"));
  append_instruction(items, "Be brief.");
  EXPECT_THAT(items[0].turns, ElementsAre("How many?\nBe brief."));
  EXPECT_THAT(items[1].turns, ElementsAre("Write a haiku."));
}

TEST(SelectItems, ReadsTheOrderItPrints) {
  EXPECT_EQ(ItemSelection::parse_order("sequential"), std::nullopt);
  EXPECT_EQ(ItemSelection::parse_order("shuffle:17"), 17U);
  ItemSelection selection;
  EXPECT_EQ(selection.order_text(), "sequential");
  selection.shuffle_seed = 17;
  EXPECT_EQ(selection.order_text(), "shuffle:17");
  for (const char* text : {"shuffle", "shuffle:", "shuffle:x", "shuffle:1x", "shuffle:-1", "random", ""}) {
    expect_error(
        Error::bad_argument, [&] { ItemSelection::parse_order(text); }, "--order", "shuffle:SEED");
  }
}

}  // namespace
}  // namespace qpn8
