#include "model/architecture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/printable.hpp"
#include "model/architectures.hpp"
#include "model/block_scales.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

constexpr std::array kArchitectures = {&kLlama, &kQwen2, &kQwen3, &kQwen3Moe};

struct WeightTypeName {
  DType stored;
  WeightType type;
};

constexpr std::array kWeightTypes = {
    WeightTypeName{DType::f32, WeightType::f32},
    WeightTypeName{DType::f16, WeightType::f16},
    WeightTypeName{DType::bf16, WeightType::bf16},
    WeightTypeName{DType::f8_e4m3, WeightType::f8_e4m3},
};

WeightType weight_type(const CheckpointTensor& tensor) {
  for (const WeightTypeName& entry : kWeightTypes) {
    if (entry.stored == tensor.dtype) return entry.type;
  }
  throw Error(Error::unsupported,
              fmt::format("{}: a projection stored as {} is not supported; known: F32, F16, BF16, F8_E4M3",
                          printable(tensor.name), to_string(tensor.dtype)));
}

/// The type that the config announces, for plans without weights.
WeightType announced_type(const ModelConfig& config) {
  if (config.fp8_weights) return WeightType::f8_e4m3;
  const auto key = config.json.contains("dtype") ? config.json.find("dtype") : config.json.find("torch_dtype");
  if (key == config.json.end() || key->is_null() || *key == "bfloat16") return WeightType::bf16;
  if (*key == "float16") return WeightType::f16;
  if (*key == "float32") return WeightType::f32;
  throw Error(Error::unsupported,
              fmt::format(R"({}: dtype is {}; known: "float32", "float16", "bfloat16")", config.file.string(),
                          printable(key->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 80)));
}

/// Stored parts may differ in type; the widest describes the projection, since that is what a dense route needs.
WeightType stored_type(const Projection& projection, const Checkpoint& checkpoint) {
  WeightType widest = WeightType::f8_e4m3;
  for (const ProjectionPart& part : projection.parts) {
    widest = std::min(widest, weight_type(checkpoint.tensor(part.tensor)));
  }
  return widest;
}

void check_parts(const Projection& projection, const Checkpoint& checkpoint) {
  for (const ProjectionPart& part : projection.parts) {
    const std::array<std::int64_t, 2> shape = {part.rows, part.cols};
    const CheckpointTensor& weight = checkpoint.tensor(part.tensor, shape);
    if (weight.dtype == DType::f8_e4m3) require_block_scales(checkpoint, weight);
  }
}

}  // namespace

const Architecture& find_architecture(const ModelConfig& config) {
  std::vector<std::string_view> known;
  for (const Architecture* architecture : kArchitectures) {
    if (architecture->model_type == config.model_type) return *architecture;
    known.push_back(architecture->model_type);
  }
  throw Error(Error::unsupported, fmt::format("{}: model_type \"{}\" is not supported; known: {}", config.file.string(),
                                              printable(config.model_type), fmt::join(known, ", ")));
}

std::vector<Projection> describe_projections(const ModelConfig& config, const Topology& topology,
                                             const Checkpoint* checkpoint) {
  std::vector<Projection> projections = find_architecture(config).projections(config, topology);
  for (Projection& projection : projections) {
    if (checkpoint != nullptr) check_parts(projection, *checkpoint);
    TensorDesc& tensor = projection.desc.tensor;
    tensor.type = checkpoint != nullptr ? stored_type(projection, *checkpoint) : announced_type(config);
    if (tensor.type == WeightType::f8_e4m3) {
      tensor.scales = ScaleKind::block;
      tensor.block_n = kScaleBlock;
      tensor.block_k = kScaleBlock;
    }
  }
  return projections;
}

}  // namespace qpn8
