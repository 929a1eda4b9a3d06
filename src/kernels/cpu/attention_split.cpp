#include "kernels/cpu/attention_split.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_split.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>

#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

// A vector is never wider than a panel of keys.
using D = hn::CappedTag<float, kKeyPanel>;
using V = hn::Vec<D>;

// Four query vectors by two vectors of positions (or dimensions): eight chains hide the latency of the additions, and
// with their operands they fit the 16 registers of AVX2.
constexpr std::size_t kTileRows = 4;
constexpr std::size_t kTileWidth = 2;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Bytes ahead of the keys and values being read that memory is asked for: half a microsecond of one core's reading. The
// processor's own prefetching loses track of four streams that change every few kilobytes.
constexpr std::int64_t kAheadBytes = 8192;

template <class T>
HWY_INLINE void ask_ahead(const T* from) {
  hwy::Prefetch(from + kAheadBytes / static_cast<std::int64_t>(sizeof(T)));
}

// Scores of kRows query vectors at kWidth vectors of positions: keys[c] points at the first dimension of the c-th.
template <std::size_t kRows, std::size_t kWidth, bool kAhead, class T>
HWY_INLINE void score_tile(const float* const* queries, const T* const* keys, std::int64_t head_dim, float scale,
                           float* scores, const std::size_t* columns) {
  const D d;
  V sums[kRows][kWidth];
  for (auto& row : sums) {
    for (V& sum : row) sum = hn::Zero(d);
  }
  for (std::int64_t i = 0; i < head_dim; ++i) {
    V key[kWidth];
    for (std::size_t c = 0; c < kWidth; ++c) {
      if constexpr (kAhead) ask_ahead(keys[c] + i * kKeyPanel);
      key[c] = load_as_float(d, keys[c] + i * kKeyPanel);
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      const V query = hn::Set(d, queries[r][i]);
      for (std::size_t c = 0; c < kWidth; ++c) sums[r][c] = hn::MulAdd(query, key[c], sums[r][c]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kWidth; ++c) {
      hn::Store(hn::Mul(sums[r][c], hn::Set(d, scale)), d, scores + r * kSplit + columns[c]);
    }
  }
}

template <std::size_t kCount>
using Count = std::integral_constant<std::size_t, kCount>;

// Calls body(rows, first, ahead) for tiles of `rows` query vectors from number `first` on: fours, then the rest. Only
// the first tile to pass over keys or values waits for memory, so it alone asks ahead.
template <class Body>
HWY_INLINE void for_row_tiles(std::size_t vectors, const Body& body) {
  std::size_t first = 0;
  if (vectors >= kTileRows) body(Count<kTileRows>(), first, std::true_type());
  for (first = kTileRows; first + kTileRows <= vectors; first += kTileRows) {
    body(Count<kTileRows>(), first, std::false_type());
  }
  if (vectors < kTileRows) {
    if (vectors == 3) body(Count<3>(), std::size_t{0}, std::true_type());
    if (vectors == 2) body(Count<2>(), std::size_t{0}, std::true_type());
    if (vectors == 1) body(Count<1>(), std::size_t{0}, std::true_type());
    return;
  }
  if (vectors - first == 3) body(Count<3>(), first, std::false_type());
  if (vectors - first == 2) body(Count<2>(), first, std::false_type());
  if (vectors - first == 1) body(Count<1>(), first, std::false_type());
}

template <std::size_t kWidth, class T>
void score_columns(const QueryTile& tile, const T* const* keys, std::int64_t head_dim, float* scores,
                   const std::size_t* columns) {
  for_row_tiles(tile.vectors.size(), [&](auto rows, std::size_t first, auto ahead) HWY_ATTR {
    score_tile<rows.value, kWidth, ahead.value>(tile.vectors.data() + first, keys, head_dim, tile.scale,
                                                scores + first * kSplit, columns);
  });
}

// Scores at positions [begin, end) of the split, multiples of a panel; `keys` is the split's first panel.
template <class T>
void score_positions(const QueryTile& tile, const T* keys, std::int64_t head_dim, std::int64_t begin, std::int64_t end,
                     float* scores) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  const auto at = [&](std::int64_t position) {
    return keys + position / kKeyPanel * kKeyPanel * head_dim + position % kKeyPanel;
  };
  std::int64_t position = begin;
  for (; position + 2 * lanes <= end; position += 2 * lanes) {
    const T* pair[kTileWidth] = {at(position), at(position + lanes)};
    const std::size_t columns[kTileWidth] = {static_cast<std::size_t>(position),
                                             static_cast<std::size_t>(position + lanes)};
    score_columns<kTileWidth>(tile, pair, head_dim, scores, columns);
  }
  if (position < end) {
    const T* single = at(position);
    const auto column = static_cast<std::size_t>(position);
    score_columns<1>(tile, &single, head_dim, scores, &column);
  }
}

// In place over the positions [begin, end) that were scored: scores become e^(score - largest), 0 outside
// [visible, end_visible).
void exponentials(float* scores, std::int64_t begin, std::int64_t end, std::int64_t visible, std::int64_t end_visible,
                  float& largest, float& total) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (visible >= end_visible) {
    std::fill(scores + begin, scores + end, 0.0F);
    largest = kMinusInfinity;
    total = 0.0F;
    return;
  }
  std::fill(scores + begin, scores + visible, kMinusInfinity);
  std::fill(scores + end_visible, scores + end, kMinusInfinity);
  V maximum = hn::Set(d, kMinusInfinity);
  for (std::int64_t i = begin; i < end; i += lanes) maximum = hn::Max(maximum, hn::Load(d, scores + i));
  maximum = hn::MaxOfLanes(d, maximum);
  V sum = hn::Zero(d);
  for (std::int64_t i = begin; i < end; i += lanes) {
    const V e = exp_nonpositive(d, hn::Sub(hn::Load(d, scores + i), maximum));
    hn::Store(e, d, scores + i);
    sum = hn::Add(sum, e);
  }
  largest = hn::GetLane(maximum);
  total = hn::GetLane(hn::SumOfLanes(d, sum));
}

// sums += weights x values over `count` positions, for kRows query vectors and kWidth vectors of dimensions.
template <std::size_t kRows, std::size_t kWidth, bool kAhead, class T>
HWY_INLINE void value_tile(const float* weights, const T* values, std::int64_t stride, std::int64_t count,
                           float* sums) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V sum[kRows][kWidth];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kWidth; ++c) {
      sum[r][c] = hn::Load(d, sums + static_cast<std::int64_t>(r) * stride + c * lanes);
    }
  }
  for (std::int64_t j = 0; j < count; ++j) {
    V value[kWidth];
    for (std::size_t c = 0; c < kWidth; ++c) {
      if constexpr (kAhead) ask_ahead(values + j * stride + c * lanes);
      value[c] = load_as_float(d, values + j * stride + c * lanes);
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      const V weight = hn::Set(d, weights[static_cast<std::int64_t>(r) * kSplit + j]);
      for (std::size_t c = 0; c < kWidth; ++c) sum[r][c] = hn::MulAdd(weight, value[c], sum[r][c]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t c = 0; c < kWidth; ++c) {
      hn::Store(sum[r][c], d, sums + static_cast<std::int64_t>(r) * stride + c * lanes);
    }
  }
}

template <std::size_t kWidth, class T>
void value_columns(std::size_t vectors, const float* weights, const T* values, std::int64_t stride, std::int64_t count,
                   float* sums) {
  for_row_tiles(vectors, [&](auto rows, std::size_t first, auto ahead) HWY_ATTR {
    value_tile<rows.value, kWidth, ahead.value>(weights + first * kSplit, values, stride, count,
                                                sums + static_cast<std::int64_t>(first) * stride);
  });
}

// Walks `count` positions in runs short enough that the values of one stay in the first-level cache while all query
// vectors and all dimensions pass over them: memory is read once and nearly in order.
template <class T>
void weigh_values(std::size_t vectors, const float* weights, const T* values, std::int64_t padded_head_dim,
                  std::int64_t count, float* sums) {
  constexpr std::int64_t kRun = 16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  for (std::int64_t j = 0; j < count; j += kRun) {
    const std::int64_t run = std::min(kRun, count - j);
    const T* from = values + j * padded_head_dim;
    std::int64_t i = 0;
    for (; i + 2 * lanes <= padded_head_dim; i += 2 * lanes) {
      value_columns<kTileWidth>(vectors, weights + j, from + i, padded_head_dim, run, sums + i);
    }
    if (i < padded_head_dim) value_columns<1>(vectors, weights + j, from + i, padded_head_dim, run, sums + i);
  }
}

template <class T>
void attend_split_typed(const KvLayer& layer, const QueryTile& tile, std::int64_t split, float* scores,
                        const PartialSoftmax& out) {
  const std::int64_t base = split * kSplit;
  // Positions of the split that any row sees, and the panels that hold them. Values outside are not touched: what an
  // earlier sequence left there may be anything, and 0 x NaN is NaN.
  const std::int64_t first = std::max<std::int64_t>(0, tile.first_visible(0) - base);
  const std::int64_t last = std::min(kSplit, tile.end_visible(tile.rows() - 1) - base);
  const std::int64_t begin = first / kKeyPanel * kKeyPanel;
  const std::int64_t end = (last + kKeyPanel - 1) / kKeyPanel * kKeyPanel;

  const T* keys = reinterpret_cast<const T*>(layer.keys) + layer.key_offset(tile.slot, tile.kv_head, base);
  score_positions(tile, keys, layer.head_dim, begin, end, scores);
  for (std::size_t i = 0; i < tile.vectors.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(i) / tile.group;
    const std::int64_t visible = std::clamp(tile.first_visible(row) - base, first, last);
    const std::int64_t end_visible = std::clamp(tile.end_visible(row) - base, first, last);
    exponentials(scores + i * kSplit, begin, end, visible, end_visible, out.largest[i], out.total[i]);
  }

  const std::int64_t padded = layer.padded_head_dim();
  std::fill(out.sums, out.sums + static_cast<std::int64_t>(tile.vectors.size()) * padded, 0.0F);
  const T* values =
      reinterpret_cast<const T*>(layer.values) + layer.value_offset(tile.slot, tile.kv_head, base + first);
  weigh_values(tile.vectors.size(), scores + first, values, padded, last - first, out.sums);
}

void attend_split_kernel(const KvLayer& layer, const QueryTile& tile, std::int64_t split, float* scores,
                         const PartialSoftmax& out) {
  if (layer.dtype == DType::f32) return attend_split_typed<float>(layer, tile, split, scores, out);
  attend_split_typed<Half>(layer, tile, split, scores, out);
}

// state = state * keep + part * take
void blend_kernel(const float* part, float take, float keep, std::int64_t count, float* state) {
  for_vectors(static_cast<std::size_t>(count), [&](auto d, std::size_t i) HWY_ATTR {
    const auto kept = hn::Mul(hn::LoadU(d, state + i), hn::Set(d, keep));
    hn::StoreU(hn::MulAdd(hn::LoadU(d, part + i), hn::Set(d, take), kept), d, state + i);
  });
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(attend_split_kernel);
HWY_EXPORT(blend_kernel);

void attend_split(const KvLayer& layer, const QueryTile& tile, std::int64_t split, float* scores,
                  const PartialSoftmax& out) {
  HWY_DYNAMIC_DISPATCH(attend_split_kernel)(layer, tile, split, scores, out);
}

void clear(const PartialSoftmax& state, std::int64_t vectors, std::int64_t padded_head_dim) {
  std::fill(state.largest, state.largest + vectors, -std::numeric_limits<float>::infinity());
  std::fill(state.total, state.total + vectors, 0.0F);
  std::fill(state.sums, state.sums + vectors * padded_head_dim, 0.0F);
}

void merge(const PartialSoftmax& part, std::int64_t vectors, std::int64_t padded_head_dim,
           const PartialSoftmax& state) {
  for (std::int64_t i = 0; i < vectors; ++i) {
    if (part.largest[i] == -std::numeric_limits<float>::infinity()) continue;  // no position of this part is seen
    const float largest = std::max(state.largest[i], part.largest[i]);
    const float keep = std::exp(state.largest[i] - largest);
    const float take = std::exp(part.largest[i] - largest);
    state.largest[i] = largest;
    state.total[i] = state.total[i] * keep + part.total[i] * take;
    HWY_DYNAMIC_DISPATCH(blend_kernel)
    (part.sums + i * padded_head_dim, take, keep, padded_head_dim, state.sums + i * padded_head_dim);
  }
}

void finish(const PartialSoftmax& state, std::int64_t vector, std::int64_t head_dim, std::int64_t padded_head_dim,
            float* out) {
  const float* sums = state.sums + vector * padded_head_dim;
  for (std::int64_t i = 0; i < head_dim; ++i) out[i] = sums[i] / state.total[vector];
}

}  // namespace qpn8::cpu
#endif
