#include "measure/tune.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "kernels/cpu/isa.hpp"
#include "route/contract_file.hpp"
#include "support/isas.hpp"

namespace qpn8 {
namespace {

ScheduleTrial trial(double one_row, double eight_rows) {
  return {.schedule = {}, .relative_l2 = 0, .one_row = Samples(3, one_row), .eight_rows = Samples(3, eight_rows)};
}

const Contract& base() {
  for (const Contract& contract : shipped_contracts()) {
    if (contract.name == "cpu-portable") return contract;
  }
  throw std::logic_error("cpu-portable is shipped");
}

TEST(CandidateSchedules, AreAllLegalDifferentAndBeginWithTheUsualOne) {
  for (const std::int64_t k : {16, 48, 64, 3072}) {
    const std::vector<Schedule> schedules = candidate_schedules(k);
    EXPECT_EQ(schedules.front().accumulator_chains, 1) << k;
    EXPECT_TRUE(schedules.front().prefetch) << k;
    for (const Schedule& schedule : schedules) {
      EXPECT_EQ(schedule_refusal(schedule, k), "");
      EXPECT_EQ(std::count(schedules.begin(), schedules.end(), schedule), 1) << to_string(schedule);
    }
  }
  EXPECT_EQ(candidate_schedules(3072).size(), 24);
  EXPECT_EQ(candidate_schedules(3072).front().split_k, 8);
  EXPECT_EQ(candidate_schedules(48).size(), 6) << "three groups are one part or none";
}

TEST(ChooseTrial, TakesTheFastestAtOneRow) {
  EXPECT_EQ(choose_trial({trial(1.0, 2.0), trial(0.9, 2.0), trial(0.8, 2.0)}), 2);
}

TEST(ChooseTrial, KeepsTheFirstUnlessAnotherGainsTwoPercent) {
  EXPECT_EQ(choose_trial({trial(1.0, 2.0), trial(0.99, 2.0)}), 0);
}

TEST(ChooseTrial, WeighsARowAloneAgainstARowAmongEight) {
  EXPECT_EQ(choose_trial({trial(1.0, 2.0), trial(0.5, 8.0), trial(0.9, 2.05)}), 2);
  EXPECT_EQ(choose_trial({trial(1.0, 2.0), trial(0.5, 5.0), trial(0.9, 2.05)}), 1);
}

TEST(Tune, MeasuresEveryCandidateAndItsContractAdmitsTheShapes) {
  const TensorDesc down = {.role = "mlp.down_proj", .k = 64, .n = 96};
  const TensorDesc head = {.role = "lm_head", .k = 48, .n = 64};
  const TuneOptions options = {.threads = 2, .rotation_bytes = 1 << 14, .repeats = {.warmups = 1, .counted = 2}};
  test::for_each_isa([&] {
    const Hardware hardware = {.kind = HardwareKind::cpu, .isa = std::string(cpu::to_string(cpu::current_isa()))};
    std::int64_t last = 0;
    std::int64_t last_total = 0;
    const TuneResult result = tune(hardware, {down, head}, options, [&](std::int64_t done, std::int64_t total) {
      last = done;
      last_total = total;
    });
    EXPECT_EQ(last, last_total);
    ASSERT_EQ(result.shapes.size(), 2);
    EXPECT_EQ(result.shapes[0].trials.size(), 18);
    EXPECT_EQ(result.shapes[1].trials.size(), 6);
    for (const TunedShape& shape : result.shapes) {
      for (const ScheduleTrial& trial : shape.trials) {
        EXPECT_GT(trial.relative_l2, 0) << "FP32 sums are not FP64's";
        EXPECT_LT(trial.relative_l2, 1e-6);
        EXPECT_EQ(trial.one_row.size(), 2);
        EXPECT_EQ(trial.eight_rows.size(), 2);
      }
    }
    ASSERT_EQ(result.thread_trials.size(), 2);
    EXPECT_EQ(result.thread_trials[1].threads, 2);
    EXPECT_EQ(to_json(result)["shapes"].size(), 2);
    EXPECT_THAT(to_table(result), testing::HasSubstr("mlp.down_proj"));
  });
}

TEST(TunedContract, HoldsWhereItsBaseDoesAndPutsMeasuredRowsFirst) {
  TuneResult result;
  result.hardware = "cpu-portable";
  result.threads = 2;
  TunedShape shape;
  shape.tensor = {.role = "mlp.down_proj", .k = 64, .n = 96};
  shape.bytes = 80;
  shape.probe = Samples(3, 100);
  shape.trials = {trial(1.0, 2.0), trial(0.9, 2.0)};
  shape.trials[1].schedule = {2, 4, true};
  shape.chosen = 1;
  result.shapes = {shape};

  const Contract written = tuned_contract(result, base(), "mine");
  const Contract contract = parse_contract(to_text(written), "mine.json");
  EXPECT_EQ(contract.name, "mine");
  EXPECT_THAT(contract.evidence.note, testing::AllOf(testing::HasSubstr("Measured by qpn8 tune on cpu-portable"),
                                                     testing::HasSubstr("mlp.down_proj 64x96 0.89")));
  const auto tuned = admit(base().hardware.front(), {}, shape.tensor, {contract});
  ASSERT_TRUE(std::holds_alternative<Admission>(tuned));
  EXPECT_EQ(std::get<Admission>(tuned).schedule, (Schedule{2, 4, true}));
  TensorDesc other = shape.tensor;
  other.n = 128;
  const auto as_before = admit(base().hardware.front(), {}, other, {contract});
  ASSERT_TRUE(std::holds_alternative<Admission>(as_before));
  EXPECT_EQ(std::get<Admission>(as_before).schedule, base().rows.back().schedule);
  other.role = "mlp.router";
  EXPECT_TRUE(std::holds_alternative<Refusal>(admit(base().hardware.front(), {}, other, {contract})))
      << "what the base keeps off stays off";
}

}  // namespace
}  // namespace qpn8
