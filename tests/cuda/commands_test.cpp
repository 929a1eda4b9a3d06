#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cuda_backend.hpp"
#include "evidence/audit.hpp"
#include "evidence/audit_gate.hpp"
#include "evidence/audit_model.hpp"
#include "measure/bench.hpp"
#include "measure/tune.hpp"
#include "qpn8/quantize.hpp"
#include "route/contract_file.hpp"
#include "support/shared_data.hpp"

// What the measuring commands do with a GPU.

namespace qpn8 {
namespace {

class CudaCommands : public testing::Test {
 protected:
  void SetUp() override {
    const CudaDevice device = find_cuda_device();
    if (!device.hardware) GTEST_SKIP() << "needs a GPU: " << device.absence;
    hardware_ = *device.hardware;
  }

  static EngineOptions options() {
    EngineOptions options;
    options.apply({{"device", "cuda"}, {"qpn8", "on"}, {"threads", 2}});
    return options;
  }

  Hardware hardware_;
};

TEST_F(CudaCommands, BenchMeasuresEveryPartOfAModelBesideTheGpusProbe) {
  BenchOptions bench;
  bench.rows = {1, 8, 9};
  bench.contexts = {4};
  bench.prefill_tokens = 8;
  bench.repeats = {.warmups = 2, .counted = 3};
  const BenchResult result = bench_model(test::data() / "tiny-qwen3", options(), bench);
  EXPECT_EQ(result.hardware, to_string(hardware_));
  EXPECT_GT(result.cache_bytes, 1 << 20);
  ASSERT_EQ(result.decode.size(), 2);
  ASSERT_EQ(result.prefill.size(), 2);
  ASSERT_EQ(result.load.size(), 2);
  EXPECT_GT(result.load[0].median().weight_bytes, 0);
  for (const OperatorResult& measured : result.operators) {
    EXPECT_GT(median(measured.seconds), 0) << measured.role;
    EXPECT_GT(median(measured.probe), 1e11) << "a GPU reads faster than 100 GB/s";
    EXPECT_LT(median(measured.bandwidth_fraction()), 1.2) << measured.role << " at " << measured.m << " rows";
  }
}

TEST_F(CudaCommands, TuneMeasuresShapesAgainstTheCpusProducts) {
  TensorDesc tensor;
  tensor.role = "mlp.down_proj";
  tensor.k = 512;
  tensor.n = 1024;
  TuneOptions tuning;
  tuning.threads = 2;
  tuning.repeats = {.warmups = 2, .counted = 3};
  std::int64_t last = 0;
  std::int64_t last_total = 0;
  const TuneResult result = tune(hardware_, {tensor}, tuning, [&](std::int64_t done, std::int64_t total) {
    last = done;
    last_total = total;
  });
  EXPECT_EQ(last, last_total);
  ASSERT_EQ(result.shapes.size(), 1);
  ASSERT_EQ(result.shapes[0].trials.size(), 1);
  EXPECT_LE(result.shapes[0].trials[0].relative_l2, 1e-5);
  EXPECT_THAT(to_table(result), testing::HasSubstr("mlp.down_proj"));
}

/// Whether a failure of the gate is about the share of outputs that round as the fallback's do.
bool is_about_shares(const std::string& failure) { return failure.rfind("fallback ", 0) == 0; }

// How many outputs of a product round as those of cuBLAS do depends on how long the sums are; the fixture's are short.
// The bounds are for real models: here each figure may be twice as far off.
TEST_F(CudaCommands, TheAuditAndItsGateFindNothingButRoundingsInAModelOfChannelScales) {
  const AuditedModel model = open_audited_model(test::data() / "tiny-qwen3", options(), kAuditText, LoadObserver());
  const std::vector<Contract> contracts = load_contracts({});
  ThreadTeam team(2);
  AuditResult result;
  audit_projections(model, contracts, AuditOptions(), team, result);
  EXPECT_FALSE(result.rows.empty());
  for (const AuditRow& row : result.rows) {
    if (row.reference != AuditReference::fallback) continue;
    EXPECT_GE(row.measures.exact_fp16_fraction, 1 - 2 * (1 - result.bounds.exact_fp16_fraction)) << row.name;
    EXPECT_LE(row.measures.relative_l2, 2 * result.bounds.relative_l2) << row.name;
  }
  std::vector<LinearSource> sources;
  for (const AuditedUnit& unit : model.units) {
    if (unit.planned.route == Route::qpn8) sources.push_back(model.source(unit));
  }
  const GateResult gate = run_gate(
      {.backend = *model.backend,
       .with_workspace = [](std::size_t bytes) { return make_cuda_backend({.threads = 2, .workspace_bytes = bytes}); },
       .sources = sources,
       .contracts = contracts,
       .team = team,
       .least_outputs = AuditOptions().least_outputs});
  EXPECT_THAT(gate.failures(), testing::Each(testing::Truly(is_about_shares)));
}

}  // namespace
}  // namespace qpn8
