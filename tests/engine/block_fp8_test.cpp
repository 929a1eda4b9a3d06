// deepseek_v4 in FP8 by blocks of 128 x 128, as its publisher stores it, made of the fixture by tools/block_fp8: held
// to the numbers that its codes stand for.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "block_fp8/block_fp8.hpp"
#include "engine/engine.hpp"
#include "support/numbers.hpp"
#include "support/shared_data.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

const std::vector<TokenId> kBlockPrompt = {5,   17, 300, 2,  44, 8,   301, 19, 77,  120, 3,
                                           250, 9,  9,   31, 7,  200, 64,  12, 319, 1};

// Shipped contracts would also quantise what the checkpoint holds as plain numbers, and the two models would differ.
constexpr const char* kShipped[] = {"QPN8_CONTRACT_CPU_AVX512", "QPN8_CONTRACT_CPU_AVX2", "QPN8_CONTRACT_CPU_NEON",
                                    "QPN8_CONTRACT_CPU_PORTABLE"};
constexpr const char* kCodesAlone = R"({
  "name": "codes-alone", "hardware": ["cpu-avx512", "cpu-avx2", "cpu-neon", "cpu-portable"],
  "topology": {"tp": "any", "pp": "any", "max_sequences": 8, "speculation": true},
  "weights": {"types": ["f8_e4m3"], "scales": ["block-128x128"]}, "default": "on",
  "rows": [{"role": "*", "layer_tp": "any", "k": "any", "n": "any", "groups": "any",
            "schedule": {"split_k": 1, "accumulator_chains": 2, "prefetch": false}}],
  "excluded": [], "evidence": {"note": "made for a test"}})";

/// The fixture in FP8 and its twin of plain numbers.
class BlockFp8 : public testing::TestWithParam<BlockFp8Options> {
 protected:
  void SetUp() override {
    for (const char* contract : kShipped) setenv(contract, "off", 1);
    write_block_fp8(test::data() / "tiny-deepseek-v4", folder_ / "fp8", GetParam());
    write_dequantised(folder_ / "fp8", folder_ / "twin");
    folder_.write("contract.json", kCodesAlone);
  }
  void TearDown() override {
    for (const char* contract : kShipped) unsetenv(contract);
  }

  Engine load(const char* model, bool packed) const {
    EngineOptions options;
    options.device = "cpu";
    options.threads = 2;
    options.kv_dtype = DType::f32;
    options.contracts = {(folder_ / "contract.json").string()};
    if (!packed) options.qpn8 = "off";
    return Engine(folder_ / model, options);
  }

 private:
  test::TemporaryFolder folder_;
};

double block_difference(const std::vector<float>& a, const std::vector<float>& b) {
  const auto row = [](const std::vector<float>& values) {
    return MatrixView<const float>(values.data(), 1, static_cast<std::int64_t>(values.size()));
  };
  return test::relative_l2(row(a), row(b));
}

TEST_P(BlockFp8, ComputesOnTheDenseRouteWhatItsCodesStandFor) {
  Engine fp8 = load("fp8", false);
  Engine twin = load("twin", false);
  for (const std::int64_t chunk : {64, 5}) {
    EXPECT_LE(block_difference(fp8.logits(kBlockPrompt, chunk), twin.logits(kBlockPrompt, chunk)), 1e-5) << chunk;
  }
}

TEST_P(BlockFp8, ComputesOnQpn8WhatItsCodesStandForWithinTheAuditsBound) {
  Engine packed = load("fp8", true);
  std::map<std::string, Route> routes;
  for (const PlannedProjection& projection : packed.plan().projections()) {
    routes[projection.tensor.role] = projection.route;
  }
  for (const char* role : {"fused_wqa_wkv", "wq_b", "wo_a", "wo_b", "indexer.wq_b", "shared_experts.gate_up_proj",
                           "shared_experts.down_proj"}) {
    EXPECT_EQ(routes.at(role), Route::qpn8) << role;
  }
  for (const char* role : {"lm_head", "mlp.router", "compressor.fused_wkv_wgate"}) {
    EXPECT_EQ(routes.at(role), Route::dense) << role;
  }
  EXPECT_EQ(routes.at("mlp.experts.down_proj"), GetParam().experts == ExpertForm::fp8 ? Route::qpn8 : Route::dense);
  Engine twin = load("twin", false);
  for (const std::int64_t chunk : {64, 5}) {
    EXPECT_LE(block_difference(packed.logits(kBlockPrompt, chunk), twin.logits(kBlockPrompt, chunk)), 1.641e-5)
        << chunk;
  }
}

std::string name_of(const testing::TestParamInfo<BlockFp8Options>& info) {
  constexpr const char* kExperts[] = {"Fp8Experts", "Fp4Experts", "PlainExperts"};
  return std::string(info.param.scales == DType::f32 ? "Fp32Scales" : "E8M0Scales") +
         kExperts[static_cast<int>(info.param.experts)];
}

INSTANTIATE_TEST_SUITE_P(Forms, BlockFp8,
                         testing::Values(BlockFp8Options{DType::f32, ExpertForm::fp8},
                                         BlockFp8Options{DType::f8_e8m0, ExpertForm::fp8},
                                         BlockFp8Options{DType::f8_e8m0, ExpertForm::fp4},
                                         BlockFp8Options{DType::f32, ExpertForm::kept}),
                         name_of);

}  // namespace
}  // namespace qpn8
