#include "backend/cpu/ngram_embedding.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cpu {
namespace {

void check_part(const CheckpointTensor& part, const CheckpointTensor& first, bool last) {
  if (part.dtype != DType::f32 && part.dtype != DType::f16 && part.dtype != DType::bf16) {
    throw Error(Error::unsupported,
                fmt::format("{}: a table of type {}; F32, F16 or BF16 is needed", part.name, to_string(part.dtype)));
  }
  const bool fits = part.rows() == first.rows() || (last && part.rows() < first.rows());
  if (part.dtype != first.dtype || part.cols() != first.cols() || !fits) {
    throw Error(Error::bad_file,
                fmt::format("{}: {} [{}, {}] does not go with {}, {} [{}, {}]", part.name, to_string(part.dtype),
                            part.rows(), part.cols(), first.name, to_string(first.dtype), first.rows(), first.cols()));
  }
}

}  // namespace

void CpuNgramEmbedding::embed(std::span<const std::int32_t> ids, const RowPlaces& places,
                              std::span<std::int32_t> history, MatrixView<float> out, ThreadTeam& team) const {
  const auto kept = static_cast<std::int64_t>(rule_.multipliers.size()) - 1;
  const TokenHistory tokens = {history.data(), static_cast<std::int64_t>(history.size()) / kept, kept};
  ngram_rows(table_, rule_, ids, places, tokens, out, team);
}

std::unique_ptr<CpuNgramEmbedding> load_ngrams(const NgramSource& source) {
  check(!source.parts.empty() && source.sizes.size() == source.offsets.size() && !source.sizes.empty(),
        "a table has parts and heads");
  const CheckpointTensor& first = *source.parts.front();
  NgramTable table = {.dtype = first.dtype, .parts = {}, .rows_a_part = first.rows(), .width = first.cols()};
  std::int64_t rows = 0;
  for (const CheckpointTensor* part : source.parts) {
    check_part(*part, first, part == source.parts.back());
    table.parts.push_back(part->bytes.data());
    rows += part->rows();
  }
  const std::int64_t needed = source.offsets.back() + source.sizes.back();
  if (rows < needed) {
    throw Error(Error::bad_file,
                fmt::format("{}: its parts have {} rows together, {} are needed", first.name, rows, needed));
  }
  NgramRule rule = {
      .multipliers = source.multipliers, .sizes = source.sizes, .offsets = source.offsets, .boundary = source.boundary};
  return std::make_unique<CpuNgramEmbedding>(std::move(table), std::move(rule));
}

}  // namespace qpn8::cpu
