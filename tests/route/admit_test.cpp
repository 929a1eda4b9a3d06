#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "route/contract_samples.hpp"
#include "route/role_pattern.hpp"
#include "support/error_of.hpp"

namespace qpn8 {
namespace {

using test::avx2;
using test::block_tensor;
using test::half_tensor;
using test::shipped;
using test::sm70;
using ::testing::HasSubstr;

constexpr Topology kPp2Tp4{4, 2, 1, false};
constexpr Topology kTp4{4, 1, 1, false};

std::string decision(const Hardware& hardware, const Topology& topology, const TensorDesc& tensor,
                     const std::vector<Contract>& contracts = shipped_contracts()) {
  const auto answer = admit(hardware, topology, tensor, contracts);
  if (const auto* refusal = std::get_if<Refusal>(&answer)) return refusal->reason;
  const auto& admission = std::get<Admission>(answer);
  return admission.contract + " " + to_string(admission.schedule) + " N=" + std::to_string(admission.padded_n);
}

bool admitted(const Hardware& hardware, const Topology& topology, const TensorDesc& tensor) {
  return std::holds_alternative<Admission>(admit(hardware, topology, tensor, shipped_contracts()));
}

TEST(Admit, Sm70Pp2Tp4HasTheRowsOfTheDesign) {
  const std::vector<std::string> expected = {
      "sm70-pp2tp4 (split 32, chains 2, no prefetch) N=1536", "sm70-pp2tp4 (split 8, chains 2, no prefetch) N=8192",
      "sm70-pp2tp4 (split 16, chains 2, no prefetch) N=4096", "sm70-pp2tp4 (split 32, chains 2, no prefetch) N=1024",
      "sm70-pp2tp4 (split 16, chains 2, no prefetch) N=4096"};
  std::vector<std::string> actual;
  for (const TensorDesc& tensor : test::pp2tp4_tensors()) actual.push_back(decision(sm70(), kPp2Tp4, tensor));
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(shipped("sm70-pp2tp4").rows.size(), expected.size());
  EXPECT_EQ(shipped("sm70-pp2tp4").excluded.size(), 2U);
}

TEST(Admit, Sm70Tp4OnlineHasTheRowsOfTheDesignAndPads336To384) {
  const std::vector<std::string> expected = {"sm70-tp4-online (split 16, chains 1, no prefetch) N=4096",
                                             "sm70-tp4-online (split 12, chains 2, no prefetch) N=2560",
                                             "sm70-tp4-online (split 16, chains 1, no prefetch) N=3584",
                                             "sm70-tp4-online (split 12, chains 2, no prefetch) N=2560",
                                             "sm70-tp4-online (split 4, chains 2, no prefetch) N=10240",
                                             "sm70-tp4-online (split 32, chains 1, no prefetch) N=384"};
  std::vector<std::string> actual;
  for (const TensorDesc& tensor : test::online_tensors()) actual.push_back(decision(sm70(), kTp4, tensor));
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(shipped("sm70-tp4-online").rows.size(), expected.size());
}

// One dimension of a row moved off its value.
struct Move {
  std::string name;
  std::function<void(TensorDesc&)> apply;
  std::string reason;
};

TEST(Admit, EveryRowRefusesATensorThatIsOffInOneDimension) {
  const std::vector<Move> moves = {
      {"k + 1", [](TensorDesc& t) { ++t.k; }, "K is "},
      {"k - 1", [](TensorDesc& t) { --t.k; }, "K is "},
      {"k + 16", [](TensorDesc& t) { t.k += 16; }, "K is "},
      {"n + 1", [](TensorDesc& t) { ++t.n; }, "N is "},
      {"n - 1", [](TensorDesc& t) { --t.n; }, "N is "},
      {"n + 32", [](TensorDesc& t) { t.n += 32; }, "N is "},
      {"groups + 1", [](TensorDesc& t) { ++t.groups; }, "groups is "},
      {"silu", [](TensorDesc& t) { t.activation = FusedActivation::silu; }, "fused activation is silu"},
      {"bf16", [](TensorDesc& t) { t.type = WeightType::bf16; }, "weights are bf16"},
      {"role", [](TensorDesc& t) { t.role += "x"; }, "does not list it"},
  };
  const auto expect_refused = [&](const Topology& topology, const TensorDesc& tensor) {
    ASSERT_TRUE(admitted(sm70(), topology, tensor)) << tensor.role;
    for (const Move& move : moves) {
      TensorDesc moved = tensor;
      move.apply(moved);
      EXPECT_THAT(decision(sm70(), topology, moved), HasSubstr(move.reason)) << tensor.role << " " << move.name;
    }
  };
  for (const TensorDesc& tensor : test::pp2tp4_tensors()) expect_refused(kPp2Tp4, tensor);
  for (const TensorDesc& tensor : test::online_tensors()) expect_refused(kTp4, tensor);
}

TEST(Admit, LayerTpOfARowIsPartOfIt) {
  for (TensorDesc tensor : test::pp2tp4_tensors()) {
    tensor.layer_tp = tensor.layer_tp == 1 ? 4 : 1;
    EXPECT_THAT(decision(sm70(), kPp2Tp4, tensor), HasSubstr("layer TP is ")) << tensor.role;
  }
  EXPECT_EQ(decision(sm70(), kPp2Tp4, block_tensor("wq_b", 1024, 8192, 1)),
            "layer TP is 1, the contract admits wq_b at 4");
}

TEST(Admit, AnotherTopologyFallsBackWithEveryDifferenceNamed) {
  struct Case {
    Topology topology;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {{2, 2, 1, false}, "tp is 2, the contract holds for 4"},
      {{8, 2, 1, false}, "tp is 8, the contract holds for 4"},
      {{4, 1, 1, false}, "pp is 1, the contract holds for 2"},
      {{4, 2, 2, false}, "2 sequences, the contract holds for 1"},
      {{4, 2, 1, true}, "speculation is on, the contract holds without it"},
      {{1, 1, 1, false}, "tp is 1, the contract holds for 4; pp is 1, the contract holds for 2"},
  };
  for (const Case& c : cases) {
    for (const TensorDesc& tensor : test::pp2tp4_tensors()) {
      EXPECT_EQ(decision(sm70(), c.topology, tensor), c.reason) << tensor.role;
    }
  }
  EXPECT_EQ(decision(sm70(), {4, 2, 1, false}, test::online_tensors()[0]), "pp is 2, the contract holds for 1");
  EXPECT_EQ(decision(sm70(), {4, 1, 1, true}, test::online_tensors()[0]),
            "speculation is on, the contract holds without it");
}

TEST(Admit, WeightsOfAnotherKindFallBackWithTheirReason) {
  TensorDesc tensor = block_tensor("wq_b", 1024, 8192, 4);
  tensor.block_n = 64;
  EXPECT_EQ(decision(sm70(), kPp2Tp4, tensor), "scales are block-64x128, the contract admits block-128x128");
  tensor.block_n = 128;
  tensor.block_k = 32;
  EXPECT_EQ(decision(sm70(), kPp2Tp4, tensor), "scales are block-128x32, the contract admits block-128x128");
  tensor.scales = ScaleKind::channel;
  EXPECT_EQ(decision(sm70(), kPp2Tp4, tensor), "scales are channel, the contract admits block-128x128");
  EXPECT_EQ(decision(sm70(), kPp2Tp4, half_tensor("wq_b", 1024, 8192, 4)),
            "weights are f16, the contract admits f8_e4m3; scales are channel, the contract admits block-128x128");
  EXPECT_EQ(decision(sm70(), kTp4, block_tensor("self_attn.o_proj", 1536, 2560, 4)),
            "weights are f8_e4m3, the contract admits f16; scales are block-128x128, the contract admits channel");
}

TEST(Admit, ExcludedRolesAreForeseenAndKeepTheContractsReason) {
  const auto refusal = [](const Topology& topology, const TensorDesc& tensor) {
    return std::get<Refusal>(admit(sm70(), topology, tensor, shipped_contracts()));
  };
  const Refusal indexer = refusal(kPp2Tp4, block_tensor("indexer.wq_b", 1024, 8192, 1));
  EXPECT_EQ(indexer.reason,
            "role indexer.wq_b: replicated, its prefill may overlap wq_b and would share the workspace");
  EXPECT_TRUE(indexer.foreseen);
  EXPECT_EQ(indexer.contract, "sm70-pp2tp4");
  EXPECT_TRUE(refusal(kPp2Tp4, block_tensor("shared_experts.gate_up_proj", 4096, 1024, 4)).foreseen);
  for (const char* role : {"mlp.router", "mlp.experts.gate_up_proj", "mlp.experts.down_proj", "lm_head",
                           "mlp.shared_expert.gate_up_proj", "mlp.shared_expert.down_proj", "linear_attn.in_proj_ba"}) {
    EXPECT_TRUE(refusal(kTp4, half_tensor(role, 2560, 640, 4)).foreseen) << role;
  }
  // Where the contract does not hold it has foreseen nothing.
  EXPECT_FALSE(refusal({2, 2, 1, false}, block_tensor("indexer.wq_b", 1024, 8192, 1)).foreseen);
  EXPECT_FALSE(refusal(kPp2Tp4, block_tensor("wq_b", 1024, 8224, 4)).foreseen);
}

TEST(Admit, ContractsForAnyModelAdmitEveryDivisibleDenseProjectionAtAnyTopology) {
  for (const char* name : {"cpu-avx512", "cpu-avx2", "cpu-neon", "cpu-portable", "sm80", "sm90"}) {
    const Hardware hardware = parse_hardware(name);
    for (const Topology& topology : {Topology{1, 1, 1, false}, Topology{3, 5, 8, true}}) {
      for (const TensorDesc& tensor :
           {half_tensor("self_attn.qkv_proj", 384, 640), half_tensor("mlp.down_proj", 16, 32, 3),
            block_tensor("wq_b", 1024, 8192, 4), block_tensor("wo_a", 4096, 1024, 4, 2),
            half_tensor("linear_attn.in_proj_qkvz", 2560, 4096, 4)}) {
        const auto answer = admit(hardware, topology, tensor, shipped_contracts());
        ASSERT_TRUE(std::holds_alternative<Admission>(answer)) << name << " " << tensor.role;
        EXPECT_EQ(std::get<Admission>(answer).contract, name);
      }
    }
  }
}

TEST(Admit, TheLmHeadIsAdmittedWhereItsRowWasMeasured) {
  const Topology topology{1, 1, 1, false};
  const TensorDesc lm_head = half_tensor("lm_head", 1024, 151936);
  for (const char* name : {"cpu-avx512", "cpu-avx2", "cpu-neon", "cpu-portable", "sm90"}) {
    const auto answer = admit(parse_hardware(name), topology, lm_head, shipped_contracts());
    EXPECT_TRUE(std::holds_alternative<Admission>(answer)) << name;
  }
  EXPECT_THAT(decision(parse_hardware("sm80"), topology, lm_head), HasSubstr("needs a measured row of its own"));
}

TEST(Admit, CpuContractsRefuseShapesAndRolesInWords) {
  const Topology topology{1, 1, 1, false};
  EXPECT_EQ(decision(avx2(), topology, half_tensor("mlp.up_proj", 4096, 1000)),
            "K=4096 N=1000: N is not a multiple of 32");
  EXPECT_THAT(decision(avx2(), topology, half_tensor("mlp.up_proj", 4095, 1024)),
              HasSubstr("K is not a multiple of 16"));
  EXPECT_THAT(decision(avx2(), topology, half_tensor("mlp.up_proj", 0, 1024)), HasSubstr("empty"));
  EXPECT_EQ(decision(avx2(), {1, 1, 9, false}, half_tensor("mlp.up_proj", 4096, 1024)),
            "9 sequences, the contract holds for up to 8");
  TensorDesc fused = half_tensor("mlp.gate_up_proj", 4096, 1024);
  fused.activation = FusedActivation::silu;
  EXPECT_THAT(decision(avx2(), topology, fused), HasSubstr("keeps gate and up in FP32"));
  for (const char* role :
       {"mlp.router", "embed_tokens", "model.embed_tokens", "self_attn.q_norm", "linear_attn.conv1d"}) {
    const auto answer = admit(avx2(), topology, half_tensor(role, 4096, 1024), shipped_contracts());
    ASSERT_TRUE(std::holds_alternative<Refusal>(answer)) << role;
    EXPECT_TRUE(std::get<Refusal>(answer).foreseen) << role;
  }
}

TEST(Admit, HardwareWithoutAContractIsToldWhichContractsThereAre) {
  EXPECT_THAT(decision(parse_hardware("sm75"), kTp4, half_tensor("lm_head", 4096, 1024)),
              ::testing::AllOf(HasSubstr("no contract holds for sm75"), HasSubstr("sm70-pp2tp4 (sm70)"),
                               HasSubstr("cpu-avx2 (cpu-avx2)")));
  EXPECT_EQ(decision(avx2(), kTp4, half_tensor("lm_head", 4096, 1024), {}), "there is no contract");
}

TEST(Admit, NewerHardwareIsCoveredWhereTheContractSaysSo) {
  Contract contract = test::small_contract("newer");
  contract.hardware.clear();
  contract.compute_capability_at_least = 80;
  const TensorDesc tensor = half_tensor("mlp.down_proj", 64, 64);
  const Topology topology{1, 1, 1, false};
  for (const char* name : {"sm80", "sm90"}) {
    EXPECT_EQ(decision(parse_hardware(name), topology, tensor, {contract}),
              "newer (split 1, chains 1, no prefetch) N=64");
  }
  EXPECT_EQ(contract_refusal(contract, parse_hardware("sm75"), topology),
            "hardware is sm75, the contract holds for sm80 or newer");
  EXPECT_EQ(contract_refusal(contract, avx2(), topology), "hardware is cpu-avx2, the contract holds for sm80 or newer");
}

TEST(Admit, AScheduleThatDoesNotDivideKIsRefusedAndTheNextRowIsAsked) {
  Contract contract = test::small_contract("two-rows");
  contract.rows[0].schedule.split_k = 16;
  const Topology topology{1, 1, 1, false};
  const TensorDesc tensor = half_tensor("mlp.down_proj", 320, 64);
  EXPECT_EQ(decision(avx2(), topology, tensor, {contract}),
            "K=320 N=64: K / 16 = 20 is not a multiple of the schedule's split_k 16");
  contract.rows.push_back(contract.rows[0]);
  contract.rows[1].schedule.split_k = 4;
  EXPECT_EQ(decision(avx2(), topology, tensor, {contract}), "two-rows (split 4, chains 1, no prefetch) N=64");
  EXPECT_EQ(decision(avx2(), topology, half_tensor("mlp.down_proj", 512, 64), {contract}),
            "two-rows (split 16, chains 1, no prefetch) N=64");
}

TEST(Admit, TheFirstContractThatAdmitsWins) {
  const Contract mine = test::small_contract("mine");
  std::vector<Contract> contracts = shipped_contracts();
  contracts.insert(contracts.begin(), mine);
  const Topology topology{1, 1, 1, false};
  EXPECT_THAT(decision(avx2(), topology, half_tensor("mlp.down_proj", 64, 64), contracts), HasSubstr("mine"));
  EXPECT_THAT(decision(avx2(), topology, half_tensor("mlp.up_proj", 64, 64), contracts), HasSubstr("cpu-avx2"));
}

TEST(Admit, TheReasonIsThatOfTheContractThatCameClosest) {
  Contract holds_and_names = test::small_contract("holds-and-names");
  holds_and_names.rows[0].k = 128;
  Contract names_elsewhere = test::small_contract("names-elsewhere");
  names_elsewhere.tp = 4;
  Contract holds_without = test::small_contract("holds-without");
  holds_without.rows[0].role = "lm_head";
  Contract excludes_elsewhere = test::small_contract("excludes-elsewhere");
  excludes_elsewhere.pp = 4;
  excludes_elsewhere.excluded.push_back({"mlp.down_proj", std::nullopt, "no"});

  // Nearest last; each added contract takes the reason over from those before it.
  const std::vector<Contract> by_nearness = {excludes_elsewhere, holds_without, names_elsewhere, holds_and_names};
  const std::vector<std::string> reasons = {"pp is 1, the contract holds for 4",
                                            "role mlp.down_proj: contract holds-without does not list it",
                                            "tp is 1, the contract holds for 4", "K is 64, the contract admits 128"};
  std::vector<Contract> contracts;
  for (std::size_t i = 0; i < by_nearness.size(); ++i) {
    contracts.push_back(by_nearness[i]);
    const auto answer = admit(avx2(), {1, 1, 1, false}, half_tensor("mlp.down_proj", 64, 64), contracts);
    EXPECT_EQ(std::get<Refusal>(answer).reason, reasons[i]);
    EXPECT_EQ(std::get<Refusal>(answer).contract, by_nearness[i].name);
  }
}

TEST(Admit, OfContractsThatCameEquallyCloseTheFirstSpeaks) {
  const std::vector<Contract> contracts = {test::small_contract("first"), test::small_contract("second")};
  const auto answer = admit(avx2(), {1, 1, 1, false}, half_tensor("mlp.down_proj", 64, 33), contracts);
  EXPECT_EQ(std::get<Refusal>(answer).contract, "first");
}

TEST(Admit, OfSeveralRowsOfARoleTheNearestGivesTheReason) {
  Contract contract = test::small_contract("rows");
  contract.rows[0].k = 64;
  contract.rows[0].n = 64;
  contract.rows.push_back(contract.rows[0]);
  contract.rows[1].k = 128;
  contract.rows[1].n = 128;
  EXPECT_EQ(decision(avx2(), {1, 1, 1, false}, half_tensor("mlp.down_proj", 128, 96), {contract}),
            "N is 96, the contract admits 128");
}

TEST(RolePattern, AStarStandsForAnyRunOfCharacters) {
  struct Case {
    const char* pattern;
    const char* role;
    bool matches;
  };
  for (const Case& c : std::vector<Case>{{"*", "", true},
                                         {"*", "lm_head", true},
                                         {"lm_head", "lm_head", true},
                                         {"lm_head", "lm_head2", false},
                                         {"wq_b", "indexer.wq_b", false},
                                         {"*wq_b", "indexer.wq_b", true},
                                         {"*norm", "norm", true},
                                         {"*norm", "normal", false},
                                         {"*experts.*", "mlp.experts.down_proj", true},
                                         {"*experts.*", "mlp.experts", false},
                                         {"a*b*c", "a.b.bc", true},
                                         {"a*b*c", "a.b.b", false},
                                         {"", "x", false}}) {
    EXPECT_EQ(role_matches(c.pattern, c.role), c.matches) << c.pattern << " " << c.role;
  }
  EXPECT_FALSE(role_matches("*a*a*a*a*a*a*a*a*a*b", std::string(20000, 'a')));
}

TEST(Hardware, NamesRoundTripAndAnUnknownOneIsRefusedWithTheKnown) {
  for (const char* name : {"cpu-avx512", "cpu-avx2", "cpu-neon", "cpu-portable", "sm70", "sm80", "sm90"}) {
    EXPECT_EQ(to_string(parse_hardware(name)), name);
  }
  for (const char* name : {"", "avx2", "cpu-sse2", "sm", "sm7", "sm070", "SM70", "gpu"}) {
    EXPECT_THAT(test::error_of([&] { parse_hardware(name); }),
                ::testing::AllOf(HasSubstr('"' + std::string(name) + '"'), HasSubstr("cpu-avx512"), HasSubstr("sm70")));
  }
}

}  // namespace
}  // namespace qpn8
