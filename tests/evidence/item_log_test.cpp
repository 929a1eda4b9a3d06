#include "evidence/item_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qpn8/error.hpp"
#include "support/expect_error.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using test::expect_error;
using test::TemporaryFolder;

ItemRecords records_of(std::int64_t index) {
  ItemRecords records;
  for (const ArmName name : kArmNames) {
    ItemRecord& record = records[static_cast<std::size_t>(name)];
    record.index = index;
    record.arm = name;
    record.id = "x";
    record.answer = "line\nbreak \"quoted\"";
    record.decode_tokens_per_s = 0.1 + 0.2;  // a number whose decimal form needs all 17 digits
    record.token_hash = "abc";
    record.value = -5;
    record.output_ids = {1, 2};
  }
  return records;
}

TEST(ItemRecord, SurvivesTheWayThroughJson) {
  const ItemRecord record = records_of(3)[1];
  const auto json = to_json(record);
  EXPECT_EQ(to_json(parse_item_record(nlohmann::ordered_json::parse(json.dump()))), json);
  for (const char* key : {"index",
                          "id",
                          "arm",
                          "seed",
                          "order",
                          "answer",
                          "value",
                          "last_number",
                          "expected",
                          "correct",
                          "invalid",
                          "truncated",
                          "finish_reason",
                          "output_tokens",
                          "token_hash",
                          "first_divergent_token",
                          "repeated_4gram",
                          "replacement_chars",
                          "nul_chars",
                          "ttft_ms",
                          "decode_tokens_per_s",
                          "output_ids"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
}

TEST(ItemRecord, NamesTheKeyThatIsWrong) {
  auto json = to_json(records_of(0)[0]);
  json["ttft_ms"] = "soon";
  expect_error(
      Error::bad_value, [&] { parse_item_record(json); }, "\"ttft_ms\"");
  json.erase("ttft_ms");
  expect_error(
      Error::bad_value, [&] { parse_item_record(json); }, "\"ttft_ms\"");
  json["arm"] = "c";
  expect_error(
      Error::bad_value, [&] { parse_item_record(json); }, "\"arm\"");
}

TEST(ItemLog, IsOnDiskAfterEveryItem) {
  TemporaryFolder folder;
  ItemLog log(folder / "items.jsonl", false);
  log.append(records_of(0));
  EXPECT_EQ(ItemLog(folder / "items.jsonl", true).items().size(), 1U);
}

TEST(ItemLog, DropsATornLineAndAnItemThatLacksArms) {
  TemporaryFolder folder;
  const auto file = folder / "items.jsonl";
  ItemLog(file, false).append(records_of(0));
  const std::string good = test::read_text(file);
  const std::string two_arms = to_json(records_of(1)[0]).dump() + "\n" + to_json(records_of(1)[1]).dump() + "\n";
  test::write_text(file, good + two_arms + "{\"index\": 1, \"id");
  EXPECT_EQ(ItemLog(file, true).items().size(), 1U);
  EXPECT_EQ(test::read_text(file), good) << "the file itself is mended";
}

TEST(ItemLog, RefusesALineInTheMiddleThatIsNotAnItems) {
  TemporaryFolder folder;
  const auto file = folder / "items.jsonl";
  ItemLog(file, false).append(records_of(0));
  test::write_text(file, test::read_text(file) + "{\"arm\": \"a\"}\n");
  expect_error(
      Error::bad_file, [&] { ItemLog(file, true); }, "items.jsonl:4: \"index\"");
}

TEST(ItemLog, AFifoInItsPlaceIsNamedAndNotWaitedFor) {
  const TemporaryFolder folder;
  const auto file = folder.make_fifo("items.jsonl");
  expect_error(
      Error::bad_file, [&] { ItemLog(file, true); }, "items.jsonl: is not a regular file");
}

TEST(ItemLog, StartsAnewUnlessItResumes) {
  TemporaryFolder folder;
  const auto file = folder / "items.jsonl";
  ItemLog(file, false).append(records_of(0));
  EXPECT_TRUE(ItemLog(file, false).items().empty());
  EXPECT_EQ(test::read_text(file), "");
}

TEST(ItemLog, WritesTextThatIsNotUtf8WithReplacements) {
  TemporaryFolder folder;
  ItemRecords records = records_of(0);
  records[0].answer = "broken \xFF byte";
  ItemLog(folder / "items.jsonl", false).append(records);
  EXPECT_EQ(ItemLog(folder / "items.jsonl", true).items()[0][0].answer, "broken \xEF\xBF\xBD byte");
}

}  // namespace
}  // namespace qpn8
