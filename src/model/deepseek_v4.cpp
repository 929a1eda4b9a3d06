#include "model/deepseek_v4.hpp"

#include <array>
#include <string_view>

#include "model/architectures.hpp"

namespace qpn8 {
namespace {

struct SavedName {
  std::string_view published;
  std::string_view saved;
};

/// Whole names.
constexpr std::array kSavedTensors = {
    SavedName{"embed.weight", "model.embed_tokens.weight"}, SavedName{"head.weight", "lm_head.weight"},
    SavedName{"norm.weight", "model.norm.weight"},          SavedName{"hc_head_fn", "model.hc_head.hc_fn"},
    SavedName{"hc_head_base", "model.hc_head.hc_base"},     SavedName{"hc_head_scale", "model.hc_head.hc_scale"},
};

constexpr std::string_view kPublishedKvNorm = "attn.kv_norm.weight";
constexpr std::string_view kSavedKvNorm = "attn.norm.weight";

}  // namespace

std::string deepseek_v4_stored_name(const Checkpoint& checkpoint, const std::string& published) {
  if (checkpoint.contains(published)) return published;
  for (const SavedName& name : kSavedTensors) {
    if (published == name.published && checkpoint.contains(name.saved)) return std::string(name.saved);
  }
  std::string saved = checkpoint.contains("model." + published) ? "model." + published : published;
  if (!published.ends_with(kPublishedKvNorm)) return saved;
  saved = published.substr(0, published.size() - kPublishedKvNorm.size()) + std::string(kSavedKvNorm);
  for (const std::string& candidate : {"model." + saved, saved, "model." + published}) {
    if (checkpoint.contains(candidate)) return candidate;
  }
  return published;
}

const Architecture kDeepseekV4 = {.model_type = "deepseek_v4",
                                  .projections = deepseek_v4_projections,
                                  .load = load_deepseek_v4,
                                  .stored_name = deepseek_v4_stored_name};

}  // namespace qpn8
