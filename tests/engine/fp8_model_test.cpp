// A checkpoint whose projections are FP8 with block scales, from its files to its logits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.hpp"
#include "support/expect_error.hpp"
#include "support/fp8_model.hpp"

namespace qpn8 {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::vector<TokenId> kFp8Prompt = {5, 17, 60, 2, 44, 8, 31, 19, 1, 12, 3};

Engine load(const std::filesystem::path& folder, const char* route) {
  EngineOptions options;
  options.threads = 2;
  options.kv_dtype = DType::f32;
  options.qpn8 = route;
  return Engine(folder, options);
}

TEST(Fp8Model, BothRoutesComputeWithTheSameWeights) {
  test::Fp8Model model;
  const std::filesystem::path& folder = model.write();
  Engine packed = load(folder, "on");
  const auto& projections = packed.plan().projections();
  EXPECT_TRUE(std::any_of(projections.begin(), projections.end(), [](const PlannedProjection& projection) {
    return projection.route == Route::qpn8 && projection.tensor.scales == ScaleKind::block;
  }));
  for (const std::int64_t chunk : {16, 1}) {
    const std::vector<float> expected = load(folder, "off").logits(kFp8Prompt, chunk);
    const std::vector<float> logits = packed.logits(kFp8Prompt, chunk);
    const auto view = [](const std::vector<float>& values) {
      return MatrixView<const float>(values.data(), 1, static_cast<std::int64_t>(values.size()));
    };
    EXPECT_LE(test::relative_l2(view(logits), view(expected)), 1e-5) << chunk;
  }
}

TEST(Fp8Model, AScaleThatCannotBeUsedNamesItsTensorOnEitherRoute) {
  const std::string scales = "model.layers.0.self_attn.k_proj.weight_scale_inv";
  for (const float bad : {0.0F, -1.0F, 1e36F}) {
    test::Fp8Model model;
    std::memcpy(model.tensors.at(scales).bytes.data() + sizeof(float), &bad, sizeof(bad));
    const std::filesystem::path& folder = model.write();
    for (const char* route : {"on", "off"}) {
      test::expect_error(
          Error::bad_value, [&] { load(folder, route); },
          AllOf(StartsWith(scales + ": scale 1 is "), HasSubstr("must be finite")));
    }
  }
}

}  // namespace
}  // namespace qpn8
