#include "qpn8/pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/buffer.hpp"
#include "base/check.hpp"
#include "base/divide_up.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "qpn8/quantize.hpp"

namespace qpn8 {
namespace {

constexpr std::int64_t kQuad = 4;
constexpr std::int64_t kQuadBytes = kQuad * kTileColumns;

std::int64_t blocks_of(std::int64_t extent) { return divide_up(extent, kScaleBlock); }

/// A weight under construction: what becomes `codes` is still writable.
struct Draft {
  Draft(std::int64_t n, std::int64_t k, ScaleKind kind) {
    if (std::string refusal = shape_refusal(k, n); !refusal.empty()) throw Error(Error::unsupported_shape, refusal);
    const auto memory = std::make_shared<Buffer>(static_cast<std::size_t>(n * k));
    codes = memory->data();
    weight.n = n;
    weight.k = k;
    weight.scale_kind = kind;
    weight.codes = {memory, reinterpret_cast<const std::uint8_t*>(memory->data())};  // keeps the whole buffer
    weight.small_codes.resize(static_cast<std::size_t>(n / kTileColumns * (k / kKGroup)));
  }

  PackedWeight weight;
  std::byte* codes = nullptr;
};

/// Whether one of the four codes has a magnitude below 8: a zero exponent field.
bool any_small(std::uint32_t codes) {
  const std::uint32_t exponents = codes & 0x78787878U;
  return ((exponents - 0x01010101U) & ~exponents & 0x80808080U) != 0;
}

/// Interleaves the codes of channels [first, first + codes.rows), which lie in one tile, and notes where they are zero
/// or subnormal. Walks the output in order: the inputs stay in the cache, whereas channel by channel every store would
/// miss.
void place_in_tile(Draft& draft, std::int64_t first, MatrixView<const std::uint8_t> codes) {
  const std::int64_t k = draft.weight.k;
  const std::int64_t tile = first / kTileColumns;
  std::byte* out = draft.codes + tile * kTileColumns * k + first % kTileColumns * kQuad;
  std::uint8_t* small = draft.weight.small_codes.data() + tile * (k / kKGroup);
  for (std::int64_t group = 0; group < k; group += kKGroup) {
    std::uint32_t small_quads = 0;
    for (std::int64_t channel = 0; channel < codes.rows; ++channel) {
      for (std::int64_t quad = 0; quad < kKGroup / kQuad; ++quad) {
        std::uint32_t four = 0;
        std::memcpy(&four, codes.data + channel * codes.stride + group + quad * kQuad, kQuad);
        std::memcpy(out + quad * kQuadBytes + channel * kQuad, &four, kQuad);
        small_quads |= static_cast<std::uint32_t>(any_small(four)) << quad;
      }
    }
    out += kKGroup * kTileColumns;
    *small = static_cast<std::uint8_t>(*small | small_quads);
    ++small;
  }
}

float quantize_row(const RowSource& source, std::int64_t row, std::span<std::uint8_t> codes) {
  const std::int64_t offset = row * source.stride;
  switch (source.type) {
    case RowSource::Type::f32:
      return quantize_channel(std::span(static_cast<const float*>(source.data) + offset, codes.size()), codes);
    case RowSource::Type::bf16:
      return quantize_channel(std::span(static_cast<const BFloat16*>(source.data) + offset, codes.size()), codes);
    case RowSource::Type::f16:
      break;
  }
  return quantize_channel(std::span(static_cast<const Half*>(source.data) + offset, codes.size()), codes);
}

void check_code_shape(MatrixView<const std::uint8_t> codes, std::int64_t scale_rows, std::int64_t scale_cols,
                      std::int64_t wanted_rows, std::int64_t wanted_cols) {
  if (scale_rows == wanted_rows && scale_cols == wanted_cols) return;
  throw Error(Error::bad_argument, fmt::format("scales: [{}, {}] for codes [{}, {}]; [{}, {}] is needed", scale_rows,
                                               scale_cols, codes.rows, codes.cols, wanted_rows, wanted_cols));
}

void check_code_rows(std::int64_t first, MatrixView<const std::uint8_t> codes) {
  for (std::int64_t row = 0; row < codes.rows; ++row) {
    try {
      check_codes(codes.row(row));
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("row {}: {}", first + row, error.what()));
    }
  }
}

/// Packs the codes of a checkpoint as they are, from channel `first` on.
void place_codes(Draft& draft, std::int64_t first, MatrixView<const std::uint8_t> codes, ThreadTeam& team) {
  // Ranges end with tiles of the packed weight: two threads must not share one's small_codes.
  const std::int64_t lead = first % kTileColumns;
  team.for_ranges(lead + codes.rows, kTileColumns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; tile += kTileColumns) {
      const std::int64_t row = std::max<std::int64_t>(0, tile - lead);
      const std::int64_t past = std::min(codes.rows, tile - lead + kTileColumns);
      const MatrixView<const std::uint8_t> part = codes.row_range(row, past - row);
      check_code_rows(first + row, part);
      place_in_tile(draft, first + row, part);
    }
  });
}

/// The largest edges that divide 128 and every border.
void choose_block_edges(std::span<const BlockSource> sources, PackedWeight& weight) {
  std::int64_t first = 0;
  for (const BlockSource& source : sources) {
    weight.block_n = std::gcd(weight.block_n, std::gcd(first, source.first_row));
    weight.block_k = std::gcd(weight.block_k, source.first_col);
    first += source.codes.rows;
  }
  if (weight.block_n >= kKGroup && weight.block_k >= kKGroup) return;
  throw Error(Error::unsupported_shape,
              fmt::format("borders cut the scale blocks into {} channels by {} inputs; multiples of {} are needed",
                          weight.block_n, weight.block_k, kKGroup));
}

/// Adds one row of scales for every block_n channels of the source.
void append_scales(const BlockSource& source, PackedWeight& weight) {
  for (std::int64_t row = 0; row < source.codes.rows; row += weight.block_n) {
    const std::span<const float> scales = source.scales.row((source.first_row + row) / kScaleBlock);
    for (std::int64_t column = 0; column < weight.k; column += weight.block_k) {
      weight.scales.push_back(scales[static_cast<std::size_t>((source.first_col + column) / kScaleBlock)]);
    }
  }
}

void check_source(const BlockSource& source, std::int64_t k) {
  const std::int64_t rows = blocks_of(source.first_row + source.codes.rows);
  const std::int64_t cols = blocks_of(source.first_col + k);
  if (source.codes.cols == k && source.scales.rows >= rows && source.scales.cols >= cols) return;
  throw Error(
      Error::bad_argument,
      fmt::format("scales: [{}, {}] for codes [{}, {}] from row {} and column {} on; K={} and scales of at least "
                  "[{}, {}] are needed",
                  source.scales.rows, source.scales.cols, source.codes.rows, source.codes.cols, source.first_row,
                  source.first_col, k, rows, cols));
}

void check_scale_rows(MatrixView<const float> scales) {
  for (std::int64_t row = 0; row < scales.rows; ++row) {
    try {
      check_scales(scales.row(row));
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("scale row {}: {}", row, error.what()));
    }
  }
}

}  // namespace

std::span<const std::uint8_t> PackedWeight::code_bytes() const {
  if (codes == nullptr) return {};
  return {codes.get(), static_cast<std::size_t>(n * k)};
}

std::int64_t PackedWeight::bytes() const {
  return n * k + static_cast<std::int64_t>(scales.size() * sizeof(float) + small_codes.size());
}

PackedWeight pack_channelwise(std::span<const RowSource> sources, std::int64_t k, ThreadTeam& team) {
  std::int64_t n = 0;
  for (const RowSource& source : sources) n += source.rows;
  Draft draft(n, k, ScaleKind::channel);
  draft.weight.scales.resize(static_cast<std::size_t>(n));
  team.for_ranges(n, kTileColumns, [&](std::int64_t begin, std::int64_t end) {
    Matrix<std::uint8_t> tile(kTileColumns, k);
    const RowSource* source = sources.data();
    std::int64_t first = 0;  // row of the fused weight at which `source` starts
    for (std::int64_t row = begin; row < end; ++row) {
      while (row - first >= source->rows) first += source++->rows;
      try {
        const std::span<std::uint8_t> codes = tile.view().row(row % kTileColumns);
        draft.weight.scales[static_cast<std::size_t>(row)] = quantize_row(*source, row - first, codes);
      } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("row {}: {}", row, error.what()));
      }
      if ((row + 1) % kTileColumns == 0) place_in_tile(draft, row / kTileColumns * kTileColumns, tile.view());
    }
  });
  return std::move(draft.weight);
}

PackedWeight pack_channelwise(MatrixView<const Half> weight, ThreadTeam& team) {
  const RowSource source{RowSource::Type::f16, weight.data, weight.rows, weight.stride};
  return pack_channelwise(std::span(&source, 1), weight.cols, team);
}

PackedWeight pack_blockwise(std::span<const BlockSource> sources, std::int64_t k, std::int64_t padded_n,
                            ThreadTeam& team) {
  std::int64_t rows = 0;
  for (const BlockSource& source : sources) rows += source.codes.rows;
  const std::int64_t n = std::max(rows, padded_n);
  Draft draft(n, k, ScaleKind::block);
  choose_block_edges(sources, draft.weight);
  std::int64_t first = 0;
  for (const BlockSource& source : sources) {
    check_source(source, k);
    check_scale_rows(source.scales);
    append_scales(source, draft.weight);
    place_codes(draft, first, source.codes, team);
    first += source.codes.rows;
  }
  // Zero times any scale is zero, so that the padding may share the last block; blocks of its own get scale 1.
  PackedWeight& weight = draft.weight;
  const std::int64_t blocks = divide_up(n, weight.block_n) * divide_up(k, weight.block_k);
  weight.scales.resize(static_cast<std::size_t>(blocks), 1.0F);
  const std::vector<std::uint8_t> zeros(static_cast<std::size_t>(k));
  place_codes(draft, rows, MatrixView<const std::uint8_t>(zeros.data(), n - rows, k, 0), team);
  return std::move(draft.weight);
}

PackedWeight pack_blockwise(MatrixView<const std::uint8_t> codes, MatrixView<const float> scales, ThreadTeam& team) {
  check_code_shape(codes, scales.rows, scales.cols, blocks_of(codes.rows), blocks_of(codes.cols));
  const BlockSource source = {.codes = codes, .scales = scales};
  return pack_blockwise(std::span(&source, 1), codes.cols, 0, team);
}

PackedWeight pack_codes(MatrixView<const std::uint8_t> codes, std::span<const float> scales, ThreadTeam& team) {
  Draft draft(codes.rows, codes.cols, ScaleKind::channel);
  check_code_shape(codes, static_cast<std::int64_t>(scales.size()), 1, codes.rows, 1);
  check_scales(scales);
  draft.weight.scales.assign(scales.begin(), scales.end());
  place_codes(draft, 0, codes, team);
  return std::move(draft.weight);
}

std::uint8_t code_at(const PackedWeight& weight, std::int64_t n, std::int64_t k) {
  check(n >= 0 && n < weight.n && k >= 0 && k < weight.k, "code_at: inside the weight");
  const std::int64_t in_tile = k / kQuad * kQuadBytes + n % kTileColumns * kQuad + k % kQuad;
  return weight.code_bytes()[static_cast<std::size_t>(n / kTileColumns * kTileColumns * weight.k + in_tile)];
}

float scale_at(const PackedWeight& weight, std::int64_t n, std::int64_t k) {
  check(n >= 0 && n < weight.n && k >= 0 && k < weight.k, "scale_at: inside the weight");
  if (weight.scale_kind == ScaleKind::channel) return weight.scales[static_cast<std::size_t>(n)];
  const std::int64_t blocks = divide_up(weight.k, weight.block_k);
  return weight.scales[static_cast<std::size_t>(n / weight.block_n * blocks + k / weight.block_k)];
}

std::string shape_refusal(std::int64_t k, std::int64_t n) {
  if (k <= 0 || n <= 0) return fmt::format("K={} N={}: an empty matrix needs no packing", k, n);
  if (k % kKGroup != 0) return fmt::format("K={} N={}: K is not a multiple of {}", k, n, kKGroup);
  if (n % kTileColumns != 0) return fmt::format("K={} N={}: N is not a multiple of {}", k, n, kTileColumns);
  return {};
}

}  // namespace qpn8
