#include "model/topology_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

bool splits(const SplitDimension& dimension, std::int64_t ranks) {
  return dimension.size % ranks == 0 || (dimension.replicates && ranks % dimension.size == 0);
}

}  // namespace

void require_split(std::span<const SplitDimension> dimensions, int tp) {
  const auto splits_all = [&](std::int64_t ranks) {
    return std::all_of(dimensions.begin(), dimensions.end(),
                       [ranks](const SplitDimension& dimension) { return splits(dimension, ranks); });
  };
  if (splits_all(tp)) return;
  std::vector<std::int64_t> legal;
  for (std::int64_t ranks = 1; ranks <= dimensions.front().size; ++ranks) {
    if (splits_all(ranks)) legal.push_back(ranks);
  }
  const auto culprit = std::find_if(dimensions.begin(), dimensions.end(),
                                    [tp](const SplitDimension& dimension) { return !splits(dimension, tp); });
  throw Error(Error::bad_argument, fmt::format("--tp {}: {} {} cannot be split by {}; legal values: {}", tp,
                                               culprit->size, culprit->what, tp, fmt::join(legal, ", ")));
}

void require_stages(const ModelConfig& config, int pp) {
  if (pp <= config.layers) return;
  throw Error(Error::bad_argument,
              fmt::format("--pp {}: {} layers fill at most {} stages", pp, config.layers, config.layers));
}

void require_mlp_width(const ModelConfig& config) {
  if (config.intermediate_size > 0) return;
  throw Error(Error::bad_file, fmt::format("{}: intermediate_size is missing or 0, expected an integer of at least 1",
                                           config.file.string()));
}

void require_gated_silu(const ModelConfig& config) {
  if (config.hidden_act == "silu" || config.hidden_act == "swish") return;
  throw Error(Error::unsupported, fmt::format(R"({}: hidden_act is "{}"; known: "silu")", config.file.string(),
                                              printable(config.hidden_act)));
}

}  // namespace qpn8
