#include "model/ngram_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "checkpoint/ngram_tables.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

/// The table's parts in the order of their numbers, or the one that holds it whole.
std::vector<const CheckpointTensor*> table_parts(const WeightLoader& loader, const std::string& prefix) {
  const std::string whole = prefix + "ngram_embedding.weight";
  if (const CheckpointTensor* tensor = loader.find(whole)) return {tensor};
  std::vector<const CheckpointTensor*> parts;
  for (;;) {
    const CheckpointTensor* part = loader.find(fmt::format("{}ngram_embedding.shard_{}.weight", prefix, parts.size()));
    if (part == nullptr) break;
    parts.push_back(part);
  }
  if (!parts.empty()) return parts;
  throw Error(Error::bad_file,
              fmt::format("the checkpoint has neither {} nor {}ngram_embedding.shard_0.weight", whole, prefix));
}

}  // namespace

NgramBlock::NgramBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix, std::int64_t rank,
                       const ModelConfig& config, const HybridConfig& details, std::int64_t max_rows)
    : backend_(backend),
      details_(*details.ngrams),
      streams_(details.streams),
      eps_(static_cast<float>(config.rms_norm_eps)),
      key_(loader.linear(prefix + "key_proj")),
      value_(loader.linear(prefix + "value_proj")) {
  const std::int64_t wide = streams_ * config.hidden_size;
  const std::string embedding = prefix + "ple_embedding.";
  NgramTables tables = ngram_tables(config, rank);
  loader.require_integers(embedding + "layer_multipliers", tables.multipliers);
  loader.require_integers(embedding + "ngram_heads_vocab_sizes", tables.sizes);
  loader.require_integers(embedding + "ngram_heads_offsets", tables.offsets);
  const std::vector<const CheckpointTensor*> parts = table_parts(loader, embedding);
  const std::int64_t width = details_.width / static_cast<std::int64_t>(tables.sizes.size());
  if (parts.front()->cols() != width) {
    throw Error(Error::bad_file,
                fmt::format("{}: {} columns, {} are needed", parts.front()->name, parts.front()->cols(), width));
  }
  table_ = backend.load_ngrams({.parts = parts,
                                .multipliers = std::move(tables.multipliers),
                                .sizes = std::move(tables.sizes),
                                .offsets = std::move(tables.offsets),
                                .boundary = details_.boundary});
  key_norm_ = loader.centred_row(prefix + "norm_key.weight", wide);
  query_norm_ = loader.centred_row(prefix + "norm_query.weight", wide);
  conv_norm_ = loader.centred_row(prefix + "norm_conv.weight", wide);
  taps_ = loader.conv_taps(prefix + "conv1d.weight", wide, details_.taps);
  const DType type = backend.activation_type();
  embedded_ = backend.allocate(type, max_rows, details_.width);
  keys_ = backend.allocate(type, max_rows, wide);
  queries_ = backend.allocate(type, max_rows, wide);
  gated_ = backend.allocate(type, max_rows, wide);
  value_out_ = backend.allocate(type, max_rows, config.hidden_size);
}

NgramCache NgramBlock::make_cache(int slots) const {
  return {backend_.allocate(DType::i32, slots * (details_.orders - 1), 1),
          backend_.allocate(DType::f32, slots * std::max<std::int64_t>(kept(), 1), keys_.tensor.cols)};
}

void NgramBlock::forward(const Tensor& h, const Batch& batch, const NgramCache& cache) {
  const Tensor embedded = embedded_.tensor.row_range(0, h.rows);
  const Tensor keys = keys_.tensor.row_range(0, h.rows);
  const Tensor queries = queries_.tensor.row_range(0, h.rows);
  const Tensor gated = gated_.tensor.row_range(0, h.rows);
  const Tensor value = value_out_.tensor.row_range(0, h.rows);
  backend_.embed_ngrams(*table_, cache.tokens.tensor, batch, embedded);
  backend_.linear(*key_, embedded, keys);
  backend_.linear(*value_, embedded, value);
  backend_.normalise_streams(keys, key_norm_.tensor, streams_, eps_, keys);
  backend_.normalise_streams(h, query_norm_.tensor, streams_, eps_, queries);
  backend_.gate_values(keys, queries, value, gated);
  // What the convolution takes in, and keeps, is normalised; what it is added to is not.
  backend_.normalise_streams(gated, conv_norm_.tensor, streams_, eps_, keys);
  backend_.causal_conv({.x = keys,
                        .weights = taps_.tensor,
                        .dilation = details_.orders,
                        .history = {cache.history.tensor, std::max<std::int64_t>(kept(), 1)}},
                       batch, queries);
  backend_.add(gated, queries);
  backend_.add(h, gated);
}

}  // namespace qpn8
