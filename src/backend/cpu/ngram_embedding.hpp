#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "backend/backend.hpp"
#include "kernels/cpu/ngram_rows.hpp"

namespace qpn8::cpu {

/// Rows are read from the checkpoint's map; nothing is copied.
class CpuNgramEmbedding : public NgramEmbedding {
 public:
  CpuNgramEmbedding(NgramTable table, NgramRule rule) : table_(std::move(table)), rule_(std::move(rule)) {}

  std::int64_t width() const override { return table_.width * static_cast<std::int64_t>(rule_.sizes.size()); }
  std::int64_t bytes_per_token() const override { return width() * static_cast<std::int64_t>(size_of(table_.dtype)); }

  /// history: the last multipliers - 1 tokens of every sequence.
  void embed(std::span<const std::int32_t> ids, const RowPlaces& places, std::span<std::int32_t> history,
             MatrixView<float> out, ThreadTeam& team) const;

 private:
  NgramTable table_;
  NgramRule rule_;
};

/// Error::bad_file naming the part whose rows, columns or type do not go with the others', or that there are too few
/// rows; Error::unsupported for a type of table that is not F32, F16 or BF16.
std::unique_ptr<CpuNgramEmbedding> load_ngrams(const NgramSource& source);

}  // namespace qpn8::cpu
