#include "evidence/ab_runner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "evidence/fake_arm.hpp"
#include "qpn8/error.hpp"
#include "support/expect_error.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using test::expect_error;
using test::FakeArm;
using test::numbered_items;
using test::output;
using ::testing::ElementsAre;

/// Answers question "q<i>" with i, rightly.
ArmOutput right_answer(std::span<const ChatMessage> messages, std::uint64_t) {
  return output("\\boxed{" + messages.back().content.substr(1) + "}");
}

ArmOutput wrong_answer(std::span<const ChatMessage>, std::uint64_t) {
  return output("I think 3, but \\boxed{none}", {1, 9}, 150);
}

/// Everything a run needs, with arms that note their calls in one list.
struct Bench {
  explicit Bench(FakeArm::Answer answer_a = right_answer, FakeArm::Answer answer_b = right_answer)
      : a("A", std::move(answer_a), &calls), b("B", std::move(answer_b), &calls) {}

  AbEnd run(const AbRun& what, bool resume = false, const AbHooks& hooks = {}) {
    ItemLog log(file(), resume);
    return run_ab(what, a, b, log, hooks);
  }
  std::filesystem::path file() const { return folder / "items.jsonl"; }
  std::vector<ItemRecords> records() const { return ItemLog(file(), true).items(); }

  test::TemporaryFolder folder;
  std::vector<std::string> calls;
  FakeArm a;
  FakeArm b;
};

TEST(AbSchedule, PairsOfItemsRunABBAWithAAAtBothEnds) {
  using enum ArmName;
  const auto schedule = interleave(3, {7, 8});
  ASSERT_EQ(schedule.size(), 6U);
  EXPECT_THAT(schedule[0].arms, ElementsAre(aa, a, b));
  EXPECT_THAT(schedule[1].arms, ElementsAre(b, a, aa));
  EXPECT_THAT(schedule[2].arms, ElementsAre(aa, a, b));
  EXPECT_THAT(schedule[3].arms, ElementsAre(b, a, aa)) << "the second seed goes on where the first ended";
  EXPECT_EQ(schedule[3].seed, 8U);
  EXPECT_EQ(schedule[3].position, 0U);
}

TEST(AbRunner, WarmsBothArmsUpAndInterleavesThem) {
  Bench bench;
  EXPECT_EQ(bench.run({numbered_items(2), {0}}), AbEnd::finished);
  EXPECT_THAT(bench.calls, ElementsAre("A:q0@0", "B:q0@0",              // warm-up
                                       "A:q0@0", "A:q0@0", "B:q0@0",    // A/A, A, B
                                       "B:q1@1", "A:q1@1", "A:q1@1"));  // B, A, A/A
}

TEST(AbRunner, TheRequestSeedIsTheSeedPlusTheItemIndex) {
  Bench bench;
  std::vector<DatasetItem> items = numbered_items(5);
  items.erase(items.begin(), items.begin() + 4);
  bench.run({items, {100, 200}});
  const auto records = bench.records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0][0].seed, 100U);
  EXPECT_EQ(records[0][0].request_seed, 104U);
  EXPECT_EQ(records[1][0].request_seed, 204U);
  EXPECT_EQ(bench.calls.back(), "A:q4@204");
}

TEST(AbRunner, RecordsWhatEachOutputIsLike) {
  Bench bench(right_answer, wrong_answer);
  bench.run({numbered_items(2), {0}});
  const auto records = bench.records();
  ASSERT_EQ(records.size(), 2U);
  const auto& [a, b, aa] = records[1];
  EXPECT_EQ(a.id, "item-1");
  EXPECT_EQ(a.arm, ArmName::a);
  EXPECT_EQ(a.value, 1);
  EXPECT_EQ(a.correct, true);
  EXPECT_FALSE(a.invalid);
  EXPECT_FALSE(a.first_divergent_token);
  EXPECT_EQ(a.output_ids, (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(b.value, std::nullopt);
  EXPECT_EQ(b.last_number, 3);
  EXPECT_EQ(b.correct, false);
  EXPECT_TRUE(b.invalid);
  EXPECT_EQ(b.first_divergent_token, 1);
  EXPECT_EQ(aa.first_divergent_token, std::nullopt);
  EXPECT_EQ(b.order, 3) << "the second item runs B first";
  EXPECT_EQ(a.order, 4);
  EXPECT_EQ(aa.order, 5);
}

TEST(AbRunner, AnOutputEndedByItsLengthIsTruncated) {
  Bench bench(right_answer, [](std::span<const ChatMessage>, std::uint64_t) {
    ArmOutput cut = output("and so on");
    cut.finish_reason = "length";
    return cut;
  });
  bench.run({numbered_items(1), {0}});
  EXPECT_FALSE(bench.records()[0][0].truncated);
  EXPECT_TRUE(bench.records()[0][1].truncated);
}

TEST(AbRunner, AnArmThatTellsNoIdsHasNoHashAndNoDivergence) {
  Bench bench(right_answer, [](std::span<const ChatMessage>, std::uint64_t) {
    ArmOutput pieces = output("0", {0, 0, 0, 0, 0});
    pieces.tokens_are_ids = false;
    return pieces;
  });
  bench.run({numbered_items(1), {0}});
  const ItemRecord b = bench.records()[0][1];
  EXPECT_FALSE(b.token_hash);
  EXPECT_FALSE(b.first_divergent_token);
  EXPECT_TRUE(b.output_ids.empty());
  EXPECT_EQ(b.output_tokens, 5);
  EXPECT_EQ(b.repeated_4gram, 0.5) << "pieces serve for repetition";
}

TEST(AbRunner, CarriesAConversationOnAndTimesAllOfIt) {
  std::vector<std::size_t> lengths;
  const FakeArm::Answer answer = [&](std::span<const ChatMessage> messages, std::uint64_t) {
    lengths.push_back(messages.size());
    if (messages.size() == 1) return output("one", {1, 2, 3}, 2.0);  // two tokens in a second
    EXPECT_EQ(messages[1].role, "assistant");
    EXPECT_EQ(messages[1].content, "one");
    return output("two", {4, 5, 6, 7, 8}, 1.0);  // four tokens in four seconds
  };
  Bench bench(answer, answer);
  bench.run({{{0, "chat", {"first", "second"}, std::nullopt}}, {0}});
  EXPECT_THAT(lengths, ::testing::Each(::testing::AnyOf(1U, 3U)));
  const ItemRecord a = bench.records()[0][0];
  EXPECT_EQ(a.answer, "one\n\ntwo");
  EXPECT_EQ(a.output_ids, (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_DOUBLE_EQ(a.decode_tokens_per_s, 6.0 / 5.0);
  EXPECT_FALSE(a.correct) << "nothing is expected, so nothing is right or wrong";
  EXPECT_FALSE(a.invalid);
}

TEST(AbRunner, TalliesAsItGoes) {
  Bench bench(right_answer, wrong_answer);
  std::vector<AbTally> tallies;
  bench.run({numbered_items(3), {0}}, false,
            {.interrupted = nullptr, .progress = [&](const AbTally& tally) { tallies.push_back(tally); }});
  ASSERT_EQ(tallies.size(), 4U) << "one before the first item, one after each";
  EXPECT_EQ(tallies[0].done, 0U);
  EXPECT_EQ(tallies[3].done, 3U);
  EXPECT_EQ(tallies[3].total, 3U);
  EXPECT_EQ(tallies[3].correct.only_a, 3);
  EXPECT_DOUBLE_EQ(tallies[3].decode_ratio, 1.5);
}

/// Interrupts before output number `at`, the warm-up not counted.
AbHooks interrupt_before(int at) {
  return {.interrupted = [at, asked = 0]() mutable { return asked++ >= at; }, .progress = nullptr};
}

TEST(AbRunner, AnInterruptedRunKeepsFinishedItemsAndResumesToTheSameFile) {
  const AbRun run{numbered_items(5), {0, 50}};
  Bench whole(right_answer, wrong_answer);
  ASSERT_EQ(whole.run(run), AbEnd::finished);
  for (int at = 0; at < 40; at += 3) {
    Bench bench(right_answer, wrong_answer);
    ASSERT_EQ(bench.run(run, false, interrupt_before(at)), AbEnd::interrupted) << at;
    EXPECT_LT(bench.records().size(), 10U);
    ASSERT_EQ(bench.run(run, true), AbEnd::finished);
    EXPECT_EQ(test::read_text(bench.file()), test::read_text(whole.file())) << "interrupted at " << at;
  }
}

TEST(AbRunner, AKilledRunResumesToTheSameFileWhereverTheFileWasCut) {
  const AbRun run{numbered_items(3), {0}};
  Bench whole(right_answer, wrong_answer);
  whole.run(run);
  const std::string text = test::read_text(whole.file());
  for (std::size_t cut = 0; cut <= text.size(); cut += 97) {
    Bench bench(right_answer, wrong_answer);
    test::write_text(bench.file(), text.substr(0, cut));
    ASSERT_EQ(bench.run(run, true), AbEnd::finished);
    ASSERT_EQ(test::read_text(bench.file()), text) << "cut after " << cut << " bytes";
  }
}

TEST(AbRunner, AFinishedRunIsNotRunAgain) {
  const AbRun run{numbered_items(3), {0}};
  Bench bench;
  bench.run(run);
  bench.calls.clear();
  EXPECT_EQ(bench.run(run, true), AbEnd::finished);
  EXPECT_TRUE(bench.calls.empty());
}

TEST(AbRunner, AnErrorOfAnArmNamesArmAndItemAndKeepsWhatIsDone) {
  Bench bench(right_answer, [](std::span<const ChatMessage> messages, std::uint64_t) {
    if (messages.back().content == "q2") throw Error(Error::check_failed, "model.layers.3: not finite");
    return output("0");
  });
  expect_error(
      Error::check_failed,
      [&] {
        bench.run({numbered_items(4), {0}});
      },
      "arm b, item 2: model.layers.3: not finite");
  EXPECT_EQ(bench.records().size(), 2U);
}

}  // namespace
}  // namespace qpn8
