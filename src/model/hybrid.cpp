#include "model/hybrid.hpp"

#include <charconv>
#include <string_view>

#include "model/architectures.hpp"

namespace qpn8 {
namespace {

constexpr std::string_view kTextPrefix = "model.";
constexpr std::string_view kNestedPrefix = "model.language_model.";
constexpr std::string_view kExperts = ".mlp.experts.";

/// "model.layers.2.mlp.experts.5.up_proj.weight" taken apart.
struct ExpertName {
  std::string packed;  ///< name of the tensor that holds this projection of all experts
  std::int64_t expert = 0;
  bool second = false;  ///< of two projections that are stacked
};

std::optional<ExpertName> expert_name(const std::string& described) {
  const std::size_t at = described.find(kExperts);
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = described;
  rest.remove_prefix(at + kExperts.size());
  ExpertName name;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), name.expert);
  if (error != std::errc()) return std::nullopt;
  const std::string_view projection = rest.substr(static_cast<std::size_t>(end - rest.data()));
  name.packed = described.substr(0, at + kExperts.size());
  name.packed += projection == ".down_proj.weight" ? "down_proj" : "gate_up_proj";
  name.second = projection == ".up_proj.weight";
  return name;
}

constexpr Architecture hybrid_architecture(std::string_view model_type) {
  return {.model_type = model_type,
          .projections = hybrid_projections,
          .load = load_hybrid,
          .stored_name = hybrid_stored_name,
          .stored_part = hybrid_stored_part};
}

}  // namespace

std::string hybrid_stored_name(const Checkpoint& checkpoint, const std::string& described) {
  if (checkpoint.contains(described) || !described.starts_with(kTextPrefix)) return described;
  const std::string nested = std::string(kNestedPrefix) + described.substr(kTextPrefix.size());
  return checkpoint.contains(nested) ? nested : described;
}

ProjectionPart hybrid_stored_part(const Checkpoint& checkpoint, const ProjectionPart& described) {
  ProjectionPart part = described;
  part.tensor = hybrid_stored_name(checkpoint, described.tensor);
  if (checkpoint.contains(part.tensor)) return part;
  const std::optional<ExpertName> name = expert_name(described.tensor);
  if (!name) return part;
  const std::string packed = hybrid_stored_name(checkpoint, name->packed);
  if (!checkpoint.contains(packed)) return part;
  const CheckpointTensor& tensor = checkpoint.tensor(packed);
  const bool stacked = packed.ends_with("gate_up_proj");
  const std::int64_t rows_an_expert = (stacked ? 2 : 1) * described.rows;
  part.tensor = packed;
  part.first_row = name->expert * rows_an_expert + (name->second ? described.rows : 0);
  // The number of experts is the tensor's own; every one that the config asks for must be among them.
  const std::int64_t experts = tensor.shape.size() == 3 ? tensor.shape[0] : 0;
  part.shape = {std::max(experts, name->expert + 1), rows_an_expert, described.cols};
  return part;
}

const Architecture kQwen3Next = hybrid_architecture("qwen3_next");
const Architecture kQwen35Text = hybrid_architecture("qwen3_5_text");
const Architecture kQwen35MoeText = hybrid_architecture("qwen3_5_moe_text");
const Architecture kQwen4ExpText = hybrid_architecture("qwen4_exp_text");

}  // namespace qpn8
