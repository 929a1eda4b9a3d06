#include "evidence/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "evidence/ab_result.hpp"

namespace qpn8 {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// Items with everything equal between the arms, for a test to change.
std::vector<ItemRecords> equal_items(std::int64_t count) {
  std::vector<ItemRecords> items;
  for (std::int64_t i = 0; i < count; ++i) {
    ItemRecords records;
    for (const ArmName name : kArmNames) {
      ItemRecord& record = records[static_cast<std::size_t>(name)];
      record.index = i;
      record.arm = name;
      record.answer = "\\boxed{1}";
      record.expected = record.value = record.last_number = 1;
      record.correct = true;
      record.token_hash = "same";
      record.output_tokens = 20;
      record.decode_tokens_per_s = 100;
      record.ttft_ms = 4;
    }
    items.push_back(records);
  }
  return items;
}

ItemRecord& b_of(ItemRecords& records) { return records[static_cast<std::size_t>(ArmName::b)]; }
ItemRecord& aa_of(ItemRecords& records) { return records[static_cast<std::size_t>(ArmName::aa)]; }

void make_wrong(ItemRecord& record) {
  record.value = record.last_number = 2;
  record.correct = false;
  record.answer = "\\boxed{2}";
  record.token_hash = "other";
  record.first_divergent_token = 7;
}

Verdict judge_items(const std::vector<ItemRecords>& items, const VerdictLimits& limits = {}) {
  return judge(summarise(items, {.resamples = 200}), limits);
}

TEST(Verdict, EqualOutputsOnEnoughItemsAreNonInferior) {
  EXPECT_EQ(judge_items(equal_items(300)).quality, Quality::non_inferior);
}

TEST(Verdict, EqualOutputsOnFewItemsAreUndecidedAndTheReasonSaysHowManyWouldDo) {
  const Verdict verdict = judge_items(equal_items(64));
  EXPECT_EQ(verdict.quality, Quality::undecided);
  EXPECT_THAT(verdict.reasons.front(), HasSubstr("about 192 pairs would decide"));
}

TEST(Verdict, SingleFlipsOtherHashesAndDivergenceDecideNothing) {
  auto items = equal_items(512);
  make_wrong(b_of(items[3]));
  for (auto& records : items) b_of(records).token_hash = "different everywhere";
  EXPECT_EQ(judge_items(items).quality, Quality::non_inferior);
}

TEST(Verdict, ALossOfWhichAllLiesBeyondTheMarginIsInferior) {
  auto items = equal_items(300);
  for (std::size_t i = 0; i < 30; ++i) make_wrong(b_of(items[i]));
  const Verdict verdict = judge_items(items);
  EXPECT_EQ(verdict.quality, Quality::inferior);
  EXPECT_THAT(verdict.recommendation, HasSubstr("keep A"));
  EXPECT_EQ(judge_items(items, {.margin = 0.08}).quality, Quality::undecided) << "a wider margin, set beforehand";
  EXPECT_EQ(judge_items(items, {.margin = 0.2}).quality, Quality::non_inferior);
}

TEST(Verdict, ARateThatRisesBeyondItsBoundIsInferiorEvenIfTheAnswersAreRight) {
  for (const auto& spoil : std::vector<void (*)(ItemRecord&)>{
           [](ItemRecord& record) { record.truncated = true; }, [](ItemRecord& record) { record.invalid = true; },
           [](ItemRecord& record) { record.repeated_4gram = 0.9; }}) {
    auto items = equal_items(300);
    for (std::size_t i = 0; i < 30; ++i) spoil(b_of(items[i]));
    EXPECT_EQ(judge_items(items).quality, Quality::inferior);
    EXPECT_EQ(judge_items(items, {.margin = 0.02, .rate_bound = 0.2}).quality, Quality::non_inferior);

    auto few = equal_items(300);
    for (std::size_t i = 0; i < 8; ++i) spoil(b_of(few[i]));
    EXPECT_EQ(judge_items(few).quality, Quality::undecided) << "above the bound by estimate, not by its interval";
  }
}

TEST(Verdict, WithoutExpectedAnswersAccuracyDecidesNothing) {
  auto items = equal_items(300);
  for (auto& records : items) {
    for (ItemRecord& record : records) record.correct.reset();
  }
  const Verdict verdict = judge_items(items);
  EXPECT_EQ(verdict.quality, Quality::undecided);
  EXPECT_THAT(verdict.reasons.front(), HasSubstr("no expected answers"));
}

TEST(Verdict, SpeedCountsOnlyBeyondWhatEqualArmsShow) {
  auto items = equal_items(300);
  for (auto& records : items) b_of(records).decode_tokens_per_s = 110;
  EXPECT_EQ(judge_items(items).speed, Speed::faster);
  EXPECT_THAT(judge_items(items).recommendation, HasSubstr("on by default"));
  for (auto& records : items) aa_of(records).decode_tokens_per_s = 115;
  EXPECT_EQ(judge_items(items).speed, Speed::same) << "A differs from itself by 15 %";
  for (auto& records : items) b_of(records).decode_tokens_per_s = 50;
  EXPECT_EQ(judge_items(items).speed, Speed::slower);
  for (auto& records : items) b_of(records).decode_tokens_per_s = 0;
  EXPECT_EQ(judge_items(items).speed, Speed::same) << "nothing was timed";
}

TEST(Verdict, SaysThatAIsNotReproducible) {
  auto items = equal_items(300);
  for (std::size_t i = 0; i < 5; ++i) aa_of(items[i]).answer = "another text";
  EXPECT_THAT(judge_items(items).reasons, Contains(HasSubstr("another text on 5 of 300 items")));
}

TEST(AbSummary, SeveralSeedsOfAnItemCountAsOneDraw) {
  // Ten items under 30 seeds, one of them lost under every seed: ten independent facts, not 300.
  std::vector<ItemRecords> items;
  for (int seed = 0; seed < 30; ++seed) {
    for (ItemRecords records : equal_items(10)) {
      if (records.front().index == 0) make_wrong(b_of(records));
      for (ItemRecord& record : records) record.seed = static_cast<std::uint64_t>(seed);
      items.push_back(records);
    }
  }
  const PairedSummary paired = summarise(items, {.resamples = 500}).paired;
  EXPECT_DOUBLE_EQ(paired.correct.difference(), -0.1);
  EXPECT_GT(paired.newcombe.low, -0.15) << "taken for 300 facts";
  EXPECT_LE(paired.bootstrap.low, -0.2) << "taken for ten";
  EXPECT_EQ(paired.accuracy_diff_ci.low, paired.bootstrap.low);
  EXPECT_EQ(paired.accuracy_diff_ci.high, std::max(paired.bootstrap.high, paired.newcombe.high));
}

TEST(AbResult, HoldsTheKeysThatOtherProgramsRelyOn) {
  AbResult result;
  result.items = equal_items(4);
  result.config_a = {{"qpn8", "off"}};
  result.config_b = {{"qpn8", "require"}};
  make_wrong(b_of(result.items[0]));
  result.summary = summarise(result.items, {.resamples = 100});
  result.verdict = judge(result.summary, result.limits);
  const auto json = to_json(result);
  for (const char* arm : {"a", "b", "aa"}) {
    for (const char* key :
         {"config", "correct", "count", "accuracy", "invalid", "truncated", "replacement_chars", "nul_chars",
          "repeated_4gram_mean", "output_tokens_mean", "decode_tokens_per_s", "ttft_ms"}) {
      EXPECT_TRUE(json["arms"][arm].contains(key)) << arm << "." << key;
    }
    for (const char* key : {"mean", "median", "p10", "p90"}) {
      EXPECT_TRUE(json["arms"][arm]["decode_tokens_per_s"].contains(key)) << key;
      EXPECT_TRUE(json["arms"][arm]["ttft_ms"].contains(key)) << key;
    }
  }
  for (const char* key :
       {"items", "both", "only_a", "only_b", "neither", "mcnemar_p", "accuracy_diff", "accuracy_diff_ci",
        "decode_ratio_mean", "decode_ratio_median", "decode_ratio_ci", "identical_hash", "first_divergence_median"}) {
    EXPECT_TRUE(json["paired"].contains(key)) << key;
  }
  for (const char* key : {"quality", "margin", "speed", "recommendation", "reasons"}) {
    EXPECT_TRUE(json["verdict"].contains(key)) << key;
  }
  EXPECT_TRUE(json.contains("plan"));
  EXPECT_EQ(json["arms"]["aa"]["config"], json["arms"]["a"]["config"]);
  EXPECT_EQ(json["arms"]["b"]["correct"], 3);
  EXPECT_EQ(json["paired"]["only_a"], 1);
  EXPECT_EQ(json["paired"]["accuracy_diff"], -0.25);
  EXPECT_EQ(json["paired"]["identical_hash"], 3);
  EXPECT_EQ(json["paired"]["first_divergence_median"], 7.0);
  EXPECT_EQ(json["paired"]["accuracy_diff_ci"].size(), 2U);
}

/// The published A/B of the online contract on four V100s: 96 problems, all right in both arms, 8 outputs equal, one
/// that grew from 1,653 tokens at a repetition of 0.199 to 3,626 at 0.507.
std::vector<ItemRecords> published_online_items() {
  std::vector<ItemRecords> items = equal_items(96);
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (ItemRecord& record : items[i]) {
      record.output_tokens = 900;
      record.repeated_4gram = 0.0378;
      record.decode_tokens_per_s = 67.627 + (i % 2 == 0 ? 0.2 : -0.2);
    }
    ItemRecord& b = b_of(items[i]);
    b.decode_tokens_per_s = 79.105 + (i % 3 == 0 ? 0.3 : -0.15);
    if (i < 8) continue;
    b.token_hash = "another";
    b.answer = "so \\boxed{1}";
    b.first_divergent_token = 40;
    b.output_tokens += i % 2 == 0 ? 114 : -114;
    b.repeated_4gram = 0.0361;
  }
  items.back()[static_cast<std::size_t>(ArmName::a)].output_tokens = 1653;
  items.back()[static_cast<std::size_t>(ArmName::a)].repeated_4gram = 0.199;
  b_of(items.back()).output_tokens = 3626;
  b_of(items.back()).repeated_4gram = 0.507;
  return items;
}

TEST(Verdict, KeepsThePublishedOnlineContractOn) {
  const std::vector<ItemRecords> items = published_online_items();
  const AbSummary summary = summarise(items, {.resamples = 200});
  EXPECT_NEAR(*summary.paired.decode_ratio_mean, 1.1697, 0.001);
  EXPECT_EQ(summary.paired.identical_text, 8);
  EXPECT_NEAR(summary.a.repeated_4gram_mean, 0.0394, 0.0005);
  EXPECT_NEAR(summary.b.repeated_4gram_mean, 0.0410, 0.0005);
  const Verdict verdict = judge(summary, {});
  EXPECT_EQ(verdict.speed, Speed::faster);
  EXPECT_NE(verdict.quality, Quality::inferior);
  EXPECT_TRUE(on_by_default(verdict));
  EXPECT_THAT(verdict.recommendation, HasSubstr("may stay on"));
}

TEST(Verdict, TurnsAFasterRouteOffWhereItsOutputsGoWrong) {
  std::vector<ItemRecords> items = published_online_items();
  for (std::size_t i = 0; i < 20; ++i) b_of(items[i]).repeated_4gram = 0.6;
  EXPECT_FALSE(on_by_default(judge_items(items))) << "a fifth of the outputs repeat themselves";
  items = published_online_items();
  for (std::size_t i = 0; i < 20; ++i) make_wrong(b_of(items[i]));
  EXPECT_FALSE(on_by_default(judge_items(items))) << "a fifth of the answers are wrong";
  EXPECT_FALSE(on_by_default(judge_items(equal_items(300)))) << "equal, but no faster";
}

}  // namespace
}  // namespace qpn8
