#include "qpn8/pack.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/buffer.hpp"
#include "base/check.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "qpn8/quantize.hpp"

namespace qpn8 {
namespace {

constexpr std::int64_t kQuad = 4;
constexpr std::int64_t kQuadBytes = kQuad * kTileColumns;

std::int64_t blocks_of(std::int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; }

/// A weight under construction: what becomes `codes` is still writable.
struct Draft {
  Draft(std::int64_t n, std::int64_t k, ScaleKind kind) {
    if (std::string refusal = shape_refusal(k, n); !refusal.empty()) throw Error(Error::unsupported_shape, refusal);
    memory = std::make_shared<Buffer>(static_cast<std::size_t>(n * k));
    weight.n = n;
    weight.k = k;
    weight.scale_kind = kind;
    weight.codes = memory;
    weight.small_codes.resize(static_cast<std::size_t>(n / kTileColumns * (k / kKGroup)));
  }

  PackedWeight weight;
  std::shared_ptr<Buffer> memory;
};

/// Whether one of the four codes has a magnitude below 8: a zero exponent field.
bool any_small(std::uint32_t codes) {
  const std::uint32_t exponents = codes & 0x78787878U;
  return ((exponents - 0x01010101U) & ~exponents & 0x80808080U) != 0;
}

/// Interleaves the codes of a tile's channels, [32, k], and notes where they are zero or subnormal. Walks the output in
/// order: the 32 inputs stay in the cache, whereas channel by channel every store would miss.
void place_tile(Draft& draft, std::int64_t tile, MatrixView<const std::uint8_t> codes) {
  const std::int64_t k = draft.weight.k;
  std::byte* out = draft.memory->data() + tile * kTileColumns * k;
  std::uint8_t* small = draft.weight.small_codes.data() + tile * (k / kKGroup);
  for (std::int64_t first = 0; first < k; first += kKGroup) {
    std::uint32_t small_quads = 0;
    for (std::int64_t channel = 0; channel < kTileColumns; ++channel) {
      for (std::int64_t quad = 0; quad < kKGroup / kQuad; ++quad) {
        std::uint32_t four = 0;
        std::memcpy(&four, codes.data + channel * codes.stride + first + quad * kQuad, kQuad);
        std::memcpy(out + quad * kQuadBytes + channel * kQuad, &four, kQuad);
        small_quads |= static_cast<std::uint32_t>(any_small(four)) << quad;
      }
    }
    out += kKGroup * kTileColumns;
    *small++ = static_cast<std::uint8_t>(small_quads);
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

/// Packs the codes of a checkpoint as they are.
void place_codes(Draft& draft, MatrixView<const std::uint8_t> codes, ThreadTeam& team) {
  team.for_ranges(codes.rows, kTileColumns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      try {
        check_codes(codes.row(row));
      } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("row {}: {}", row, error.what()));
      }
    }
    for (std::int64_t row = begin; row < end; row += kTileColumns) {
      place_tile(draft, row / kTileColumns, codes.row_range(row, kTileColumns));
    }
  });
}

}  // namespace

std::span<const std::uint8_t> PackedWeight::code_bytes() const {
  if (codes == nullptr) return {};
  return {reinterpret_cast<const std::uint8_t*>(codes->data()), codes->size()};
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
      if ((row + 1) % kTileColumns == 0) place_tile(draft, row / kTileColumns, tile.view());
    }
  });
  return std::move(draft.weight);
}

PackedWeight pack_channelwise(MatrixView<const Half> weight, ThreadTeam& team) {
  const RowSource source{RowSource::Type::f16, weight.data, weight.rows, weight.stride};
  return pack_channelwise(std::span(&source, 1), weight.cols, team);
}

PackedWeight pack_blockwise(MatrixView<const std::uint8_t> codes, MatrixView<const float> scales, ThreadTeam& team) {
  Draft draft(codes.rows, codes.cols, ScaleKind::block);
  check_code_shape(codes, scales.rows, scales.cols, blocks_of(codes.rows), blocks_of(codes.cols));
  for (std::int64_t row = 0; row < scales.rows; ++row) {
    try {
      check_scales(scales.row(row));
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("scale row {}: {}", row, error.what()));
    }
    draft.weight.scales.insert(draft.weight.scales.end(), scales.row(row).begin(), scales.row(row).end());
  }
  place_codes(draft, codes, team);
  return std::move(draft.weight);
}

PackedWeight pack_codes(MatrixView<const std::uint8_t> codes, std::span<const float> scales, ThreadTeam& team) {
  Draft draft(codes.rows, codes.cols, ScaleKind::channel);
  check_code_shape(codes, static_cast<std::int64_t>(scales.size()), 1, codes.rows, 1);
  check_scales(scales);
  draft.weight.scales.assign(scales.begin(), scales.end());
  place_codes(draft, codes, team);
  return std::move(draft.weight);
}

std::uint8_t code_at(const PackedWeight& weight, std::int64_t n, std::int64_t k) {
  check(n >= 0 && n < weight.n && k >= 0 && k < weight.k, "code_at: inside the weight");
  const std::int64_t in_tile = k / kQuad * kQuadBytes + n % kTileColumns * kQuad + k % kQuad;
  return weight.code_bytes()[static_cast<std::size_t>(n / kTileColumns * kTileColumns * weight.k + in_tile)];
}

float scale_at(const PackedWeight& weight, std::int64_t n, std::int64_t k) {
  check(n >= 0 && n < weight.n && k >= 0 && k < weight.k, "scale_at: inside the weight");
  const std::int64_t index =
      weight.scale_kind == ScaleKind::channel ? n : n / kScaleBlock * blocks_of(weight.k) + k / kScaleBlock;
  return weight.scales[static_cast<std::size_t>(index)];
}

std::string shape_refusal(std::int64_t k, std::int64_t n) {
  if (k <= 0 || n <= 0) return fmt::format("K={} N={}: an empty matrix needs no packing", k, n);
  if (k % kKGroup != 0) return fmt::format("K={} N={}: K is not a multiple of {}", k, n, kKGroup);
  if (n % kTileColumns != 0) return fmt::format("K={} N={}: N is not a multiple of {}", k, n, kTileColumns);
  return {};
}

}  // namespace qpn8
