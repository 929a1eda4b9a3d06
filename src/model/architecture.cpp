#include "model/architecture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/printable.hpp"
#include "model/architectures.hpp"
#include "model/block_scales.hpp"
#include "qpn8/error.hpp"
#include "quant/e2m1.hpp"

namespace qpn8 {
namespace {

constexpr std::array kArchitectures = {&kDeepseekV4, &kLlama,      &kQwen2,         &kQwen3,       &kQwen3Moe,
                                       &kQwen3Next,  &kQwen35Text, &kQwen35MoeText, &kQwen4ExpText};

struct WeightTypeName {
  DType stored;
  WeightType type;
};

constexpr std::array kWeightTypes = {
    WeightTypeName{DType::f32, WeightType::f32},    WeightTypeName{DType::f16, WeightType::f16},
    WeightTypeName{DType::bf16, WeightType::bf16},  WeightTypeName{DType::f8_e4m3, WeightType::f8_e4m3},
    WeightTypeName{DType::u8, WeightType::f4_e2m1}, WeightTypeName{DType::i8, WeightType::f4_e2m1},
};

WeightType weight_type(const CheckpointTensor& tensor) {
  for (const WeightTypeName& entry : kWeightTypes) {
    if (entry.stored == tensor.dtype) return entry.type;
  }
  throw Error(Error::unsupported,
              fmt::format("{}: a projection stored as {} is not supported; known: F32, F16, BF16, F8_E4M3",
                          printable(tensor.name), to_string(tensor.dtype)));
}

/// The config's dtype.
WeightType unquantised_type(const ModelConfig& config) {
  const auto key = config.json.contains("dtype") ? config.json.find("dtype") : config.json.find("torch_dtype");
  if (key == config.json.end() || key->is_null() || *key == "bfloat16") return WeightType::bf16;
  if (*key == "float16") return WeightType::f16;
  if (*key == "float32") return WeightType::f32;
  throw Error(Error::unsupported,
              fmt::format(R"({}: dtype is {}; known: "float32", "float16", "bfloat16")", config.file.string(),
                          printable(key->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 80)));
}

/// The type that the config announces, for plans without weights.
WeightType announced_type(const ModelConfig& config, const Projection& projection) {
  if (projection.announced == Announced::fp4) return WeightType::f4_e2m1;
  const bool quantised = config.fp8_weights && projection.announced == Announced::as_config;
  return quantised ? WeightType::f8_e4m3 : unquantised_type(config);
}

/// Stored parts may differ in type; the widest describes the projection, since that is what a dense route needs.
WeightType stored_type(const Projection& projection, const Checkpoint& checkpoint) {
  WeightType widest = WeightType::f4_e2m1;
  for (const ProjectionPart& part : projection.parts) {
    widest = std::min(widest, weight_type(checkpoint.tensor(part.tensor)));
  }
  return widest;
}

void check_parts(const Projection& projection, const Checkpoint& checkpoint) {
  for (const ProjectionPart& part : projection.parts) {
    const bool fp4 = weight_type(checkpoint.tensor(part.tensor)) == WeightType::f4_e2m1;
    std::vector<std::int64_t> shape = part.shape;
    if (shape.empty()) shape = {part.rows, fp4 ? part.cols / 2 : part.cols};
    const CheckpointTensor& weight = checkpoint.tensor(part.tensor, shape);
    if (fp4) require_group_scales(checkpoint, weight);
    if (weight.dtype == DType::f8_e4m3) require_block_scales(checkpoint, weight);
  }
}

ProjectionPart stored_form(const Architecture& architecture, const Checkpoint& checkpoint, ProjectionPart part) {
  if (architecture.stored_part != nullptr) return architecture.stored_part(checkpoint, part);
  if (architecture.stored_name != nullptr) part.tensor = architecture.stored_name(checkpoint, part.tensor);
  return part;
}

void set_scales(TensorDesc& tensor) {
  if (tensor.type == WeightType::f8_e4m3) {
    tensor.scales = ScaleKind::block;
    tensor.block_n = kScaleBlock;
    tensor.block_k = kScaleBlock;
  } else if (tensor.type == WeightType::f4_e2m1) {
    tensor.scales = ScaleKind::block;
    tensor.block_n = 1;
    tensor.block_k = kFp4Group;
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
  const Architecture& architecture = find_architecture(config);
  std::vector<Projection> projections = architecture.projections(config, topology);
  for (Projection& projection : projections) {
    TensorDesc& tensor = projection.desc.tensor;
    if (checkpoint == nullptr) {
      tensor.type = announced_type(config, projection);
    } else {
      for (ProjectionPart& part : projection.parts) part = stored_form(architecture, *checkpoint, part);
      check_parts(projection, *checkpoint);
      tensor.type = stored_type(projection, *checkpoint);
    }
    set_scales(tensor);
  }
  return projections;
}

}  // namespace qpn8
