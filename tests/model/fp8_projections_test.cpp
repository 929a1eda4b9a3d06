#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/architecture.hpp"
#include "support/expect_error.hpp"
#include "support/fp8_model.hpp"

namespace qpn8 {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kDown = "model.layers.0.mlp.down_proj.weight";

std::vector<Projection> described(test::Fp8Model& model) {
  const std::filesystem::path folder = model.write();
  const Checkpoint checkpoint(folder);
  return describe_projections(load_model_config(folder), {}, &checkpoint);
}

void expect_refused(test::Fp8Model& model, Error::Kind kind, const testing::Matcher<std::string>& message) {
  test::expect_error([&] { described(model); }, kind, message);
}

TEST(Fp8Projections, AreDescribedByTheirTensorsWhetherOrNotTheConfigSaysSo) {
  for (const bool announced : {true, false}) {
    test::Fp8Model model;
    if (!announced) model.config.erase("quantization_config");
    for (const Projection& projection : described(model)) {
      const TensorDesc& tensor = projection.desc.tensor;
      const bool head = tensor.role == "lm_head";
      EXPECT_EQ(tensor.type, head ? WeightType::f32 : WeightType::f8_e4m3) << projection.desc.name;
      EXPECT_EQ(tensor.scales, head ? ScaleKind::channel : ScaleKind::block) << projection.desc.name;
      EXPECT_EQ(tensor.block_n, head ? 0 : 128) << projection.desc.name;
    }
  }
}

TEST(Fp8Projections, WithoutWeightsAreWhatTheConfigAnnounces) {
  const test::Fp8Model model;
  const ModelConfig config = parse_model_config(model.config.dump(), "config.json");
  EXPECT_EQ(describe_projections(config, {}, nullptr).front().desc.tensor.type, WeightType::f8_e4m3);
}

TEST(Fp8Projections, ScalesMayHaveTheShorterName) {
  test::Fp8Model model;
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    const std::string module = std::string("model.layers.0.self_attn.") + name;
    auto scales = model.tensors.extract(module + ".weight_scale_inv");
    scales.key() = module + ".scale";
    model.tensors.insert(std::move(scales));
  }
  EXPECT_NO_THROW(described(model));
}

TEST(Fp8Projections, WithoutScalesNameTheTensor) {
  test::Fp8Model model;
  model.tensors.erase(kDown + "_scale_inv");
  expect_refused(model, Error::unsupported, AllOf(StartsWith(kDown + ":"), HasSubstr(kDown + "_scale_inv")));
}

TEST(Fp8Projections, WithScalesOfAnotherBlockSizeNameTheTensor) {
  test::Fp8Model model;
  model.add_scales(kDown + "_scale_inv", 3, 5);  // blocks of 64 x 64
  expect_refused(model, Error::bad_file, AllOf(StartsWith(kDown + "_scale_inv: shape [3, 5]"), HasSubstr("is [2, 3]")));
}

}  // namespace
}  // namespace qpn8
