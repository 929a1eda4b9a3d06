#include "route/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "route/contract_samples.hpp"
#include "support/error_of.hpp"

namespace qpn8 {
namespace {

using test::avx2;
using test::half_tensor;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Topology kOne{1, 1, 1, false};

// Two layers of a small decoder: 4 projections that a CPU contract admits a layer, a router and an LM head.
std::vector<ProjectionDesc> decoder(const std::string& prefix = "model.") {
  std::vector<ProjectionDesc> projections;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = prefix + "layers." + std::to_string(layer) + ".";
    projections.push_back({block + "self_attn.qkv_proj", half_tensor("self_attn.qkv_proj", 384, 640)});
    projections.push_back({block + "self_attn.o_proj", half_tensor("self_attn.o_proj", 384, 384)});
    projections.push_back({block + "mlp.gate_up_proj", half_tensor("mlp.gate_up_proj", 384, 2304)});
    projections.push_back({block + "mlp.down_proj", half_tensor("mlp.down_proj", 1152, 384)});
    projections.push_back({block + "mlp.router", half_tensor("mlp.router", 384, 64)});
  }
  projections.push_back({"lm_head", half_tensor("lm_head", 384, 1024)});
  return projections;
}

Rollback rollback_of(const std::optional<std::string>& flag, const Environment& environment = {}) {
  return read_rollback(flag, environment, shipped_contracts());
}

Plan plan_of(const std::vector<ProjectionDesc>& projections, const Rollback& rollback = {},
             const Topology& topology = kOne, const Hardware& hardware = avx2()) {
  return make_plan(hardware, topology, projections, shipped_contracts(), rollback);
}

const ContractStatus& status_of(const Plan& plan, const std::string& name) {
  for (const ContractStatus& status : plan.contracts()) {
    if (status.name == name) return status;
  }
  throw Error(Error::bad_argument, "the plan has no contract " + name);
}

TEST(Plan, RoutesEveryProjectionInOrderAndFindsItByName) {
  const std::vector<ProjectionDesc> projections = decoder();
  const Plan plan = plan_of(projections);
  ASSERT_EQ(plan.projections().size(), projections.size());
  for (std::size_t i = 0; i < projections.size(); ++i) {
    EXPECT_EQ(plan.projections()[i].name, projections[i].name);
    EXPECT_EQ(&plan.at(projections[i].name), &plan.projections()[i]);
    EXPECT_FALSE(plan.projections()[i].reason.empty());
  }
  EXPECT_EQ(plan.count(Route::qpn8), 9U);
  EXPECT_EQ(plan.count(Route::dense), 2U);
  const PlannedProjection& down = plan.at("model.layers.1.mlp.down_proj");
  EXPECT_EQ(down.route, Route::qpn8);
  EXPECT_EQ(down.contract, "cpu-avx2");
  EXPECT_EQ(down.padded_n, 384);
  EXPECT_EQ(plan.at("lm_head").route, Route::qpn8) << "the CPU contracts have a row for it";
  EXPECT_EQ(plan.at("model.layers.1.mlp.router").route, Route::dense);
  EXPECT_THAT(plan.at("model.layers.1.mlp.router").reason, HasSubstr("role mlp.router: "));
  EXPECT_EQ(plan.workspace_bytes(), 16 << 20);
}

TEST(Plan, EveryContractHasAStatusThatSaysWhy) {
  const Plan plan = plan_of(decoder(), rollback_of(std::nullopt, {{"QPN8_CONTRACT_CPU_AVX2", "off"}}));
  ASSERT_EQ(plan.contracts().size(), shipped_contracts().size());
  const ContractStatus& off = status_of(plan, "cpu-avx2");
  EXPECT_TRUE(off.holds);
  EXPECT_FALSE(off.in_force);
  EXPECT_TRUE(off.default_on);
  EXPECT_EQ(off.why, "off by QPN8_CONTRACT_CPU_AVX2=off");
  const ContractStatus& elsewhere = status_of(plan, "sm70-pp2tp4");
  EXPECT_FALSE(elsewhere.holds);
  EXPECT_EQ(elsewhere.why, "hardware is cpu-avx2, the contract holds for sm70");
  EXPECT_EQ(status_of(plan_of(decoder()), "cpu-avx2").why, "on by its default");
  EXPECT_EQ(status_of(plan_of(decoder(), rollback_of("on")), "cpu-avx2").why, "on by --qpn8 on");
}

TEST(Plan, WhatWasTurnedOffFallsBackAndSaysByWhat) {
  const Plan plan = plan_of(decoder(), rollback_of(std::nullopt, {{"QPN8", "off"}}));
  EXPECT_EQ(plan.count(Route::qpn8), 0U);
  EXPECT_EQ(plan.workspace_bytes(), 0);
  EXPECT_EQ(plan.at("model.layers.0.mlp.down_proj").reason, "contract cpu-avx2 is off by QPN8=off");
  EXPECT_EQ(plan.at("model.layers.0.mlp.down_proj").contract, "cpu-avx2");
  EXPECT_THAT(plan.at("model.layers.0.mlp.router").reason, HasSubstr("role mlp.router: "))
      << "off or not, this one is excluded";
}

TEST(Plan, WithOneOfTwoContractsOffTheOtherServes) {
  std::vector<Contract> contracts = shipped_contracts();
  contracts.insert(contracts.begin(), test::small_contract("mine"));
  const Rollback rollback = read_rollback(std::nullopt, {{"QPN8_CONTRACT_MINE", "off"}}, contracts);
  const Plan plan = make_plan(avx2(), kOne, decoder(), contracts, rollback);
  EXPECT_EQ(plan.at("model.layers.0.mlp.down_proj").contract, "cpu-avx2");

  const Rollback other = read_rollback(std::nullopt, {{"QPN8_CONTRACT_CPU_AVX2", "off"}}, contracts);
  const Plan second = make_plan(avx2(), kOne, decoder(), contracts, other);
  EXPECT_EQ(second.at("model.layers.0.mlp.down_proj").contract, "mine");
  EXPECT_EQ(second.at("model.layers.0.self_attn.o_proj").reason,
            "contract cpu-avx2 is off by QPN8_CONTRACT_CPU_AVX2=off");
}

TEST(Plan, AContractThatIsOffDoesNotSpeakForOneInForce) {
  std::vector<Contract> contracts = shipped_contracts();
  contracts.push_back(test::small_contract("mine"));
  contracts.back().rows[0].role = "mlp.router";
  contracts.back().rows[0].k = 128;
  const Rollback rollback = read_rollback(std::nullopt, {{"QPN8_CONTRACT_CPU_AVX2", "off"}}, contracts);
  const Plan plan = make_plan(avx2(), kOne, decoder(), contracts, rollback);
  EXPECT_EQ(plan.at("model.layers.0.mlp.router").reason, "K is 384, the contract admits 128");
  EXPECT_FALSE(plan.at("model.layers.0.mlp.router").foreseen) << "only the contract that is off excludes it";
}

TEST(Plan, RequireListsEveryRefusedProjectionByReason) {
  std::vector<ProjectionDesc> projections = decoder();
  EXPECT_NO_THROW(plan_of(projections, rollback_of("require"))) << "routers are excluded by the contract";

  projections[1].tensor.n = 1000;
  projections[6].tensor.n = 1000;
  projections[3].tensor.k = 1153;
  try {
    plan_of(projections, rollback_of("require"));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_status(), 3);
    EXPECT_STREQ(error.what(),
                 "--qpn8 require: 3 of 11 projections would run dense without a contract that excludes them; "
                 "K=384 N=1000: N is not a multiple of 32 (model.layers.0.self_attn.o_proj, "
                 "model.layers.1.self_attn.o_proj); "
                 "K=1153 N=384: K is not a multiple of 16 (model.layers.0.mlp.down_proj)");
  }
  EXPECT_NO_THROW(plan_of(projections, rollback_of("auto")));
}

TEST(Plan, RequireRefusesAContractThatIsOffAndHardwareThatHasNone) {
  EXPECT_THAT(test::error_of([] {
                plan_of(decoder(), rollback_of("require", {{"QPN8_CONTRACT_CPU_AVX2", "off"}}));
              }),
              AllOf(HasSubstr("9 of 11"), HasSubstr("contract cpu-avx2 is off by QPN8_CONTRACT_CPU_AVX2=off (")));
  EXPECT_THAT(test::error_of([] { plan_of(decoder(), rollback_of("require"), kOne, parse_hardware("sm75")); }),
              AllOf(HasSubstr("11 of 11"), HasSubstr("no contract holds for sm75")));
  EXPECT_NO_THROW(plan_of(decoder(), rollback_of("require", {{"QPN8", "off"}}))) << "the flag replaces QPN8";
}

TEST(Plan, ContractsAreInForceUnderTheirOwnTopologyAlone) {
  std::vector<ProjectionDesc> projections;
  for (const TensorDesc& tensor : test::pp2tp4_tensors()) projections.push_back({tensor.role, tensor});
  const Plan at_home = plan_of(projections, {}, {4, 2, 1, false}, test::sm70());
  EXPECT_EQ(at_home.count(Route::qpn8), projections.size());
  EXPECT_EQ(at_home.at("wo_a").schedule, (Schedule{32, 2, false}));
  const Plan elsewhere = plan_of(projections, {}, {4, 1, 1, false}, test::sm70());
  EXPECT_EQ(elsewhere.count(Route::qpn8), 0U);
  EXPECT_EQ(elsewhere.at("wo_a").reason, "pp is 1, the contract holds for 2")
      << "though sm70-tp4-online is in force, which does not know the role";
}

TEST(Plan, JsonHasTheKeysThatOtherProgramsRelyOn) {
  const auto json = to_json(plan_of(decoder()));
  EXPECT_EQ(json["summary"].dump(), R"({"qpn8":9,"dense":2})");
  EXPECT_EQ(json["contracts"].size(), shipped_contracts().size());
  for (const char* key : {"name", "default", "holds", "why", "in_force"}) {
    EXPECT_TRUE(json["contracts"][0].contains(key)) << key;
  }
  EXPECT_EQ(json["projections"][0].dump(),
            R"({"name":"model.layers.0.self_attn.qkv_proj","role":"self_attn.qkv_proj","layer_tp":1,"k":384,"n":640,)"
            R"("groups":1,"route":"qpn8","reason":"admitted by contract cpu-avx2","contract":"cpu-avx2",)"
            R"("schedule":{"split_k":8,"accumulator_chains":2,"prefetch":true},"padded_n":640})");
  const auto& router = json["projections"][4];
  EXPECT_EQ(router["route"], "dense");
  EXPECT_TRUE(router["schedule"].is_null());
  EXPECT_EQ(router["foreseen"], true);
}

// The model's name, path, type and architecture cannot reach a plan: it is made from tensors. What names the
// projections have changes the names printed and nothing else.
TEST(Plan, DependsOnTensorsAlone) {
  auto json = to_json(plan_of(decoder("model.")));
  auto renamed = to_json(plan_of(decoder("another.language_model.")));
  for (auto* plan : {&json, &renamed}) {
    for (auto& projection : (*plan)["projections"]) projection.erase("name");
  }
  EXPECT_EQ(json.dump(), renamed.dump());
}

TEST(Plan, SummaryLineCountsAndNamesTheContracts) {
  EXPECT_EQ(summary_line(plan_of(decoder())),
            "qpn8: 9 of 11 projections on QPN8 (contract cpu-avx2), 2 dense; run 'qpn8 plan' for reasons");
  EXPECT_EQ(summary_line(plan_of(decoder(), rollback_of("off"))),
            "qpn8: 0 of 11 projections on QPN8 (no contract in force), 11 dense; run 'qpn8 plan' for reasons");
}

TEST(Plan, TableShowsEveryProjectionWithItsReason) {
  const std::string table = to_table(plan_of(decoder()));
  for (const ProjectionDesc& projection : decoder()) EXPECT_THAT(table, HasSubstr(projection.name));
  EXPECT_THAT(table, AllOf(HasSubstr("cpu-avx2 (split 8, chains 2, prefetch)"), HasSubstr("role mlp.router: "),
                           HasSubstr("hardware is cpu-avx2, the contract holds for sm70"), HasSubstr("384x640")));
  const auto padded = plan_of({{"inject", test::online_tensors().back()}}, {}, {4, 1, 1, false}, test::sm70());
  EXPECT_THAT(to_table(padded), HasSubstr("10240x336 padded to 384"));
  const auto grouped = plan_of({{"wo_a", test::pp2tp4_tensors()[3]}}, {}, {4, 2, 1, false}, test::sm70());
  EXPECT_THAT(to_table(grouped), HasSubstr("2 groups of 4096x1024"));
}

}  // namespace
}  // namespace qpn8
