#include <fmt/format.h>

#include <array>

#include "checkpoint/synthetic.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

/// Keys that hold one entry a layer.
constexpr std::array kPerLayer = {"layer_types", "mlp_layer_types", "compress_ratios"};
/// Names that published configs have for the number of experts.
constexpr std::array kExperts = {"num_experts", "num_local_experts", "n_routed_experts"};

void check_range(const char* flag, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  throw Error(Error::bad_argument, fmt::format("{} {}: expected {} to {}", flag, value, least, most));
}

void reduce_layers(nlohmann::json& reduced, std::int64_t published, std::int64_t layers) {
  check_range("--layers", layers, 1, published);
  reduced["num_hidden_layers"] = layers;
  for (const char* key : kPerLayer) {
    const auto list = reduced.find(key);
    if (list == reduced.end() || !list->is_array() || static_cast<std::int64_t>(list->size()) <= layers) continue;
    list->erase(list->begin() + layers, list->end());
  }
}

void reduce_experts(nlohmann::json& reduced, const ModelConfig& config, std::int64_t experts) {
  bool found = false;
  for (const char* key : kExperts) {
    if (!reduced.contains(key)) continue;
    check_range("--experts", experts, config.integer("num_experts_per_tok", 1), config.integer(key, 1));
    reduced[key] = experts;
    found = true;
  }
  if (!found) {
    throw Error(Error::bad_argument, fmt::format("--experts {}: model_type {} has none", experts, config.model_type));
  }
}

void reduce_tables(nlohmann::json& reduced, const ModelConfig& config, std::int64_t rows) {
  constexpr const char* kRows = "ngram_vocab_size_base";
  if (!reduced.contains(kRows)) {
    throw Error(Error::bad_argument,
                fmt::format("--ngram-rows {}: model_type {} has no n-gram tables", rows, config.model_type));
  }
  check_range("--ngram-rows", rows, 2, config.integer(kRows, 2));
  reduced[kRows] = rows;
}

}  // namespace

ModelConfig reduced_config(const ModelConfig& config, const Reduction& reduction) {
  nlohmann::json reduced = config.json;
  if (reduction.layers) reduce_layers(reduced, config.layers, *reduction.layers);
  if (reduction.experts) reduce_experts(reduced, config, *reduction.experts);
  if (reduction.ngram_rows) reduce_tables(reduced, config, *reduction.ngram_rows);
  return parse_model_config(reduced.dump(), config.file);
}

}  // namespace qpn8
