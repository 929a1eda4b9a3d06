// What of Qwen3.8-Flash-Next runs on four V100s, and what falls back and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/presets.hpp"
#include "model/architecture.hpp"
#include "qpn8/contract.hpp"
#include "qpn8/error.hpp"
#include "route/plan.hpp"
#include "route/rollback.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr Topology kTp4{.tp = 4, .pp = 1, .max_sequences = 1, .speculation = false};

ModelConfig flash_next(const json& changes = json::object()) {
  json config = preset_config("qwen3.8-flash-next").json;
  config.merge_patch(changes);
  return parse_model_config(config.dump(), "config.json");
}

std::vector<ProjectionDesc> described_hybrid(const ModelConfig& config, const Topology& topology) {
  std::vector<ProjectionDesc> descs;
  for (const Projection& projection : describe_projections(config, topology, nullptr)) descs.push_back(projection.desc);
  return descs;
}

Plan hybrid_plan(const std::vector<ProjectionDesc>& descs, const Topology& topology, const char* hardware = "sm70",
                 const Environment& environment = {}) {
  return make_plan(parse_hardware(hardware), topology, descs, shipped_contracts(),
                   read_rollback(std::nullopt, environment, shipped_contracts()));
}

struct OnlineRow {
  std::int64_t k;
  std::int64_t n;
  std::int64_t padded_n;
  const char* schedule;
  int count;
};

const std::map<std::string, OnlineRow> kOnlineRows = {
    {"linear_attn.in_proj_qkvz", {2560, 4096, 4096, "split 16, chains 1, no prefetch", 36}},
    {"linear_attn.out_proj", {1536, 2560, 2560, "split 12, chains 2, no prefetch", 36}},
    {"self_attn.qkv_proj", {2560, 3584, 3584, "split 16, chains 1, no prefetch", 12}},
    {"self_attn.o_proj", {1536, 2560, 2560, "split 12, chains 2, no prefetch", 12}},
    {"hyper_connection.up", {320, 10240, 10240, "split 4, chains 2, no prefetch", 97}},
    {"hyper_connection.down_inject", {10240, 336, 384, "split 32, chains 1, no prefetch", 96}},
};

TEST(HybridPlan, HasTheSixClassesOfTheOnlineContractAndNoOther) {
  const Plan plan = hybrid_plan(described_hybrid(flash_next(), kTp4), kTp4);
  std::map<std::string, int> packed;
  for (const PlannedProjection& projection : plan.projections()) {
    const TensorDesc& tensor = projection.tensor;
    if (projection.route == Route::dense) {
      EXPECT_FALSE(kOnlineRows.contains(tensor.role)) << projection.name << ": " << projection.reason;
      continue;
    }
    const OnlineRow& row = kOnlineRows.at(tensor.role);
    EXPECT_EQ(tensor.k, row.k) << projection.name;
    EXPECT_EQ(tensor.n, row.n) << projection.name;
    EXPECT_EQ(projection.padded_n, row.padded_n) << projection.name;
    EXPECT_EQ(to_string(projection.schedule), "(" + std::string(row.schedule) + ")") << projection.name;
    EXPECT_EQ(projection.contract, "sm70-tp4-online");
    ++packed[tensor.role];
  }
  for (const auto& [role, row] : kOnlineRows) EXPECT_EQ(packed[role], row.count) << role;
  EXPECT_EQ(plan.workspace_bytes(), 16 << 20);
}

TEST(HybridPlan, GivesTheContractsReasonForWhatStaysAsTheCheckpointHasIt) {
  const Plan plan = hybrid_plan(described_hybrid(flash_next(), kTp4), kTp4);
  std::map<std::string, int> foreseen;
  for (const PlannedProjection& projection : plan.projections()) {
    if (projection.foreseen) ++foreseen[projection.tensor.role];
  }
  for (const char* role :
       {"mlp.router", "mlp.experts.gate_up_proj", "mlp.experts.down_proj", "mlp.shared_expert.gate_up_proj",
        "mlp.shared_expert.down_proj", "mlp.shared_expert_gate", "linear_attn.in_proj_ba", "lm_head"}) {
    EXPECT_GT(foreseen[role], 0) << role;
  }
}

TEST(HybridPlan, IsOffByItsOwnSwitchAndByTheCommonOne) {
  const std::vector<ProjectionDesc> descs = described_hybrid(flash_next(), kTp4);
  EXPECT_GT(hybrid_plan(descs, kTp4).count(Route::qpn8), 0U) << "on by default";
  const Environment own = {{"QPN8_CONTRACT_SM70_TP4_ONLINE", "off"}};
  EXPECT_EQ(hybrid_plan(descs, kTp4, "sm70", own).count(Route::qpn8), 0U);
  const Environment common = {{"QPN8", "off"}};
  EXPECT_EQ(hybrid_plan(descs, kTp4, "sm70", common).count(Route::qpn8), 0U);
}

/// One thing that is not as the contract has it.
struct HybridDifference {
  std::string name;
  std::string role;
  std::string reason;
  Topology topology = kTp4;
  std::function<void(TensorDesc&)> edit = [](TensorDesc&) {};
};

class HybridFallback : public testing::TestWithParam<HybridDifference> {};

TEST_P(HybridFallback, GivesItsReason) {
  const HybridDifference& difference = GetParam();
  std::vector<ProjectionDesc> descs = described_hybrid(flash_next(), kTp4);
  for (ProjectionDesc& desc : descs) {
    if (desc.tensor.role == difference.role) difference.edit(desc.tensor);
  }
  int found = 0;
  const Plan plan = hybrid_plan(descs, difference.topology);
  for (const PlannedProjection& projection : plan.projections()) {
    if (projection.tensor.role != difference.role) continue;
    ++found;
    EXPECT_EQ(projection.route, Route::dense) << projection.name;
    EXPECT_THAT(projection.reason, HasSubstr(difference.reason)) << projection.name;
  }
  EXPECT_EQ(found, kOnlineRows.at(difference.role).count);
}

/// Each class with its K and its N one off, and the topologies that the contract does not hold for.
std::vector<HybridDifference> hybrid_differences() {
  std::vector<HybridDifference> all;
  const auto named = [](const std::string& role, const char* what) {
    std::string name = role + what;
    std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
    return name;
  };
  for (const auto& [role, row] : kOnlineRows) {
    for (const std::int64_t off : {-1, 1}) {
      const std::string k = std::to_string(row.k + off);
      const std::string n = std::to_string(row.n + off);
      all.push_back({.name = named(role, off < 0 ? "KBelow" : "KAbove"),
                     .role = role,
                     .reason = "K is " + k + ", the contract admits " + std::to_string(row.k),
                     .edit = [off](TensorDesc& tensor) { tensor.k += off; }});
      all.push_back({.name = named(role, off < 0 ? "NBelow" : "NAbove"),
                     .role = role,
                     .reason = "N is " + n + ", the contract admits " + std::to_string(row.n),
                     .edit = [off](TensorDesc& tensor) { tensor.n += off; }});
    }
    all.push_back({.name = named(role, "Fp8"),
                   .role = role,
                   .reason = "weights are f8_e4m3, the contract admits",
                   .edit = [](TensorDesc& tensor) { tensor.type = WeightType::f8_e4m3; }});
    all.push_back({.name = named(role, "Tp8"),
                   .role = role,
                   .reason = "tp is 8, the contract holds for 4",
                   .topology = {8, 1, 1, false}});
    all.push_back({.name = named(role, "Pp2"),
                   .role = role,
                   .reason = "pp is 2, the contract holds for 1",
                   .topology = {4, 2, 1, false}});
    all.push_back({.name = named(role, "TwoSequences"),
                   .role = role,
                   .reason = "2 sequences, the contract holds for 1",
                   .topology = {4, 1, 2, false}});
    all.push_back({.name = named(role, "Speculation"),
                   .role = role,
                   .reason = "speculation is on, the contract holds without it",
                   .topology = {4, 1, 1, true}});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Differences, HybridFallback, testing::ValuesIn(hybrid_differences()),
                         [](const auto& difference) { return difference.param.name; });

TEST(HybridPlan, TheCpuAdmitsTheSameRolesAtAnyTp) {
  for (const int tp : {1, 2, 4}) {
    const Topology topology{.tp = tp, .pp = 1, .max_sequences = 1, .speculation = false};
    const Plan plan = hybrid_plan(described_hybrid(flash_next(), topology), topology, "cpu-avx512");
    for (const PlannedProjection& projection : plan.projections()) {
      const std::string& role = projection.tensor.role;
      if (kOnlineRows.contains(role)) {
        EXPECT_EQ(projection.route, Route::qpn8) << tp << " " << projection.name << ": " << projection.reason;
      }
      if (role == "linear_attn.in_proj_ba" || role == "mlp.router") {
        EXPECT_EQ(projection.route, Route::dense) << projection.name;
      }
    }
  }
}

TEST(HybridPlan, RanksThatDoNotDivideTheHeadsAreRefusedWithTheLegalOnes) {
  try {
    described_hybrid(flash_next(), {.tp = 3, .pp = 1, .max_sequences = 1, .speculation = false});
    FAIL() << "16 key heads cannot be split by 3";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("legal values: 1, 2, 4, 8"));
  }
}

TEST(HybridPlan, HoldsNoNameOfTheModel) {
  const std::string plan = to_json(hybrid_plan(described_hybrid(flash_next(), kTp4), kTp4)).dump();
  for (const char* name : {"qwen", "Qwen", "flash"}) EXPECT_EQ(plan.find(name), std::string::npos) << name;
}

}  // namespace
}  // namespace qpn8
