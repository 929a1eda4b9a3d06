// What of DeepSeek-V4 runs on four V100s twice over, and what falls back and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/presets.hpp"
#include "model/architecture.hpp"
#include "qpn8/contract.hpp"
#include "route/plan.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr Topology kPp2Tp4{.tp = 4, .pp = 2, .max_sequences = 1, .speculation = false};

ModelConfig flash(const json& changes = json::object()) {
  json config = preset_config("deepseek-v4-flash").json;
  config.merge_patch(changes);
  return parse_model_config(config.dump(), "config.json");
}

std::vector<ProjectionDesc> described(const ModelConfig& config, const Topology& topology) {
  std::vector<ProjectionDesc> descs;
  for (const Projection& projection : describe_projections(config, topology, nullptr)) descs.push_back(projection.desc);
  return descs;
}

Plan plan_of(const std::vector<ProjectionDesc>& descs, const Topology& topology, const char* hardware = "sm70") {
  return make_plan(parse_hardware(hardware), topology, descs, shipped_contracts(), {});
}

/// K x N, groups and schedule of what is on QPN8.
struct Row {
  std::int64_t k;
  std::int64_t n;
  std::int64_t groups;
  const char* schedule;
};

const std::map<std::string, Row> kRows = {
    {"fused_wqa_wkv", {4096, 1536, 1, "split 32, chains 2, no prefetch"}},
    {"wq_b", {1024, 8192, 1, "split 8, chains 2, no prefetch"}},
    {"wo_a", {4096, 1024, 2, "split 32, chains 2, no prefetch"}},
    {"wo_b", {2048, 4096, 1, "split 16, chains 2, no prefetch"}},
    {"shared_experts.down_proj", {512, 4096, 1, "split 16, chains 2, no prefetch"}},
};

TEST(DeepseekV4Plan, HasTheContractsRowsInEveryLayerAndNoOther) {
  const Plan plan = plan_of(described(flash(), kPp2Tp4), kPp2Tp4);
  std::map<std::string, std::set<std::string>> packed;  // layer -> roles
  for (const PlannedProjection& projection : plan.projections()) {
    const TensorDesc& tensor = projection.tensor;
    if (projection.route == Route::dense) {
      EXPECT_FALSE(kRows.contains(tensor.role)) << projection.name << ": " << projection.reason;
      continue;
    }
    const Row& row = kRows.at(tensor.role);
    EXPECT_EQ(tensor.k, row.k) << projection.name;
    EXPECT_EQ(tensor.n, row.n) << projection.name;
    EXPECT_EQ(tensor.groups, row.groups) << projection.name;
    EXPECT_EQ(to_string(projection.schedule), "(" + std::string(row.schedule) + ")") << projection.name;
    EXPECT_EQ(projection.contract, "sm70-pp2tp4");
    packed[projection.name.substr(0, projection.name.find(tensor.role == "shared_experts.down_proj" ? "ffn" : "attn"))]
        .insert(tensor.role);
  }
  ASSERT_EQ(packed.size(), 43U);
  for (const auto& [layer, roles] : packed) EXPECT_EQ(roles.size(), kRows.size()) << layer;
  EXPECT_EQ(plan.count(Route::qpn8), 43U * kRows.size());
  EXPECT_EQ(plan.workspace_bytes(), 16 << 20) << "one for all projections of a device";
}

TEST(DeepseekV4Plan, GivesTheContractsReasonForTheTwoRolesThatItExcludes) {
  const Plan plan = plan_of(described(flash(), kPp2Tp4), kPp2Tp4);
  std::map<std::string, int> counts;
  for (const PlannedProjection& projection : plan.projections()) {
    if (!projection.foreseen) continue;
    ++counts[projection.tensor.role];
    EXPECT_THAT(projection.reason, HasSubstr("role " + projection.tensor.role + ": "));
    EXPECT_THAT(projection.reason, HasSubstr(projection.tensor.role == "indexer.wq_b" ? "would share the workspace"
                                                                                      : "rounds both to FP16"));
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"indexer.wq_b", 21}, {"shared_experts.gate_up_proj", 43}}));
}

TEST(DeepseekV4Plan, ShapesOfARankAreItsShare) {
  std::map<std::string, TensorDesc> by_role;
  for (const ProjectionDesc& desc : described(flash(), kPp2Tp4)) by_role[desc.tensor.role] = desc.tensor;
  struct Shape {
    const char* role;
    int layer_tp;
    std::int64_t k;
    std::int64_t n;
    WeightType type;
  };
  for (const Shape& shape : std::vector<Shape>{
           {"shared_experts.gate_up_proj", 4, 4096, 1024, WeightType::f8_e4m3},
           {"indexer.wq_b", 1, 1024, 8192, WeightType::f8_e4m3},
           {"indexer.weights_proj", 1, 4096, 64, WeightType::bf16},
           {"indexer.compressor.fused_wkv_wgate", 1, 4096, 512, WeightType::bf16},
           {"compressor.fused_wkv_wgate", 1, 4096, 2048, WeightType::bf16},  // of the last layer, which is sparse
           {"mlp.router", 1, 4096, 256, WeightType::bf16},
           {"mlp.experts.gate_up_proj", 4, 4096, 1024, WeightType::f8_e4m3},
           {"lm_head", 4, 4096, 32320, WeightType::bf16}}) {
    const TensorDesc& tensor = by_role.at(shape.role);
    EXPECT_EQ(tensor.layer_tp, shape.layer_tp) << shape.role;
    EXPECT_EQ(tensor.k, shape.k) << shape.role;
    EXPECT_EQ(tensor.n, shape.n) << shape.role;
    EXPECT_EQ(tensor.type, shape.type) << shape.role;
  }
}

/// One thing that is not as the contract has it.
struct Difference {
  std::string name;
  Topology topology = kPp2Tp4;
  json config = json::object();
  std::function<void(TensorDesc&)> edit = [](TensorDesc&) {};
  std::string role;
  std::string reason;
};

class DeepseekV4Fallback : public testing::TestWithParam<Difference> {};

TEST_P(DeepseekV4Fallback, GivesItsReason) {
  const Difference& difference = GetParam();
  std::vector<ProjectionDesc> descs = described(flash(difference.config), difference.topology);
  int found = 0;
  for (ProjectionDesc& desc : descs) difference.edit(desc.tensor);
  const Plan plan = plan_of(descs, difference.topology);
  for (const PlannedProjection& projection : plan.projections()) {
    if (projection.tensor.role != difference.role) continue;
    ++found;
    EXPECT_EQ(projection.route, Route::dense) << projection.name;
    EXPECT_EQ(projection.reason, difference.reason) << projection.name;
  }
  EXPECT_EQ(found, 43);
}

std::vector<Difference> differences() {
  const auto only = [](const char* role, const std::function<void(TensorDesc&)>& edit) {
    return [role, edit](TensorDesc& tensor) {
      if (tensor.role == role) edit(tensor);
    };
  };
  return {
      {.name = "Tp8", .topology = {8, 2, 1, false}, .role = "wo_b", .reason = "tp is 8, the contract holds for 4"},
      {.name = "Tp2", .topology = {2, 2, 1, false}, .role = "wo_a", .reason = "tp is 2, the contract holds for 4"},
      {.name = "Pp1", .topology = {4, 1, 1, false}, .role = "wq_b", .reason = "pp is 1, the contract holds for 2"},
      {.name = "TwoSequences",
       .topology = {4, 2, 2, false},
       .role = "fused_wqa_wkv",
       .reason = "2 sequences, the contract holds for 1"},
      {.name = "Speculation",
       .topology = {4, 2, 1, true},
       .role = "shared_experts.down_proj",
       .reason = "speculation is on, the contract holds without it"},
      {.name = "AnotherBlock",
       .edit = only("wo_b", [](TensorDesc& tensor) { tensor.block_k = 32; }),
       .role = "wo_b",
       .reason = "scales are block-128x32, the contract admits block-128x128"},
      {.name = "ReplicatedWqB",
       .edit = only("wq_b", [](TensorDesc& tensor) { tensor.layer_tp = 1; }),
       .role = "wq_b",
       .reason = "layer TP is 1, the contract admits wq_b at 4"},
      {.name = "ANarrowerHead",
       .config = {{"head_dim", 256}},
       .role = "wq_b",
       .reason = "N is 4096, the contract admits 8192"},
      {.name = "ALowerRank",
       .config = {{"q_lora_rank", 512}},
       .role = "fused_wqa_wkv",
       .reason = "N is 1024, the contract admits 1536"},
      {.name = "OtherGroups",
       .config = {{"o_groups", 16}, {"o_lora_rank", 512}},
       .role = "wo_a",
       .reason = "K is 2048, the contract admits 4096; N is 512, the contract admits 1024; groups is 4, the contract "
                 "admits 2"},
      {.name = "Unquantised",
       .config = {{"quantization_config", nullptr}},
       .role = "wo_b",
       .reason = "weights are f16, the contract admits f8_e4m3; scales are channel, the contract admits block-128x128"},
  };
}

INSTANTIATE_TEST_SUITE_P(Differences, DeepseekV4Fallback, testing::ValuesIn(differences()),
                         [](const auto& difference) { return difference.param.name; });

TEST(DeepseekV4Plan, NamesFp4ExpertsWhereTheConfigAnnouncesThem) {
  for (const ProjectionDesc& desc : described(flash({{"expert_dtype", "fp4"}}), kPp2Tp4)) {
    const bool expert = desc.tensor.role.starts_with("mlp.experts.");
    EXPECT_EQ(desc.tensor.type == WeightType::f4_e2m1, expert) << desc.name;
    EXPECT_EQ(desc.tensor.block_k == 32, expert) << desc.name;
  }
  const Plan plan = plan_of(described(flash({{"expert_dtype", "fp4"}}), {}), {}, "cpu-avx2");
  for (const PlannedProjection& projection : plan.projections()) {
    if (projection.tensor.role != "mlp.experts.down_proj") continue;
    EXPECT_EQ(projection.route, Route::dense);
    EXPECT_THAT(projection.reason, HasSubstr("weights are f4_e2m1"));
  }
}

TEST(DeepseekV4Plan, HoldsNoNameOfTheModel) {
  const std::string plan = to_json(plan_of(described(flash(), kPp2Tp4), kPp2Tp4)).dump();
  for (const char* name : {"deepseek", "Deepseek", "flash"}) EXPECT_EQ(plan.find(name), std::string::npos) << name;
  const json renamed = {{"architectures", {"SomethingElse"}}, {"_name_or_path", "/a/b"}, {"name", "x"}};
  EXPECT_EQ(to_json(plan_of(described(flash(renamed), kPp2Tp4), kPp2Tp4)).dump(), plan);
}

}  // namespace
}  // namespace qpn8
