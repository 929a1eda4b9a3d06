#include "kernels/cpu/block_attention.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/block_attention.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

/// Scores of all positions of one panel of keys.
template <class T>
void score_panel(const T* panel, std::span<const float> q, float* scores) {
  const hn::CappedTag<float, kKeyPanel> d;  // whole vectors, whatever their width
  for (std::size_t i = 0; i < kKeyPanel; i += hn::Lanes(d)) {
    auto even = hn::Zero(d);
    auto odd = hn::Zero(d);
    std::size_t dim = 0;
    for (; dim + 2 <= q.size(); dim += 2) {
      const T* row = panel + dim * kKeyPanel + i;
      even = hn::MulAdd(load_as_float(d, row), hn::Set(d, q[dim]), even);
      odd = hn::MulAdd(load_as_float(d, row + kKeyPanel), hn::Set(d, q[dim + 1]), odd);
    }
    if (dim < q.size()) {
      even = hn::MulAdd(load_as_float(d, panel + dim * kKeyPanel + i), hn::Set(d, q[dim]), even);
    }
    hn::StoreU(hn::Add(even, odd), d, scores + i);
  }
}

/// scores become weights of sum 1; the largest keeps the exponentials from overflowing.
void soften(std::span<float> scores) {
  float largest = scores[0];
  for (const float score : scores) largest = std::max(largest, score);
  for_vectors(scores.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto shifted = hn::Sub(hn::LoadU(d, scores.data() + i), hn::Set(d, largest));
    hn::StoreU(exp_nonpositive(d, shifted), d, scores.data() + i);
  });
  float total = 0.0F;
  for (const float weight : scores) total += weight;
  const float inverse = 1.0F / total;
  for (float& weight : scores) weight *= inverse;
}

template <class T>
void attend_positions(const T* keys, const T* values, std::int64_t padded_dim, std::span<const float> q, float scale,
                      std::span<const std::int32_t> positions, std::span<float> scores, std::span<float> out) {
  float panel_scores[kKeyPanel] = {};
  std::int64_t scored = -1;
  for (std::size_t u = 0; u < positions.size(); ++u) {
    const std::int64_t panel = positions[u] / kKeyPanel;
    if (panel != scored) {
      score_panel(keys + panel * kKeyPanel * static_cast<std::int64_t>(q.size()), q, panel_scores);
      scored = panel;
    }
    scores[u] = scale * panel_scores[positions[u] % kKeyPanel];
  }
  soften(scores);
  for_vectors(out.size(), [&](auto d, std::size_t i) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (std::size_t u = 0; u < positions.size(); ++u) {
      const T* row = values + positions[u] * padded_dim;
      sum = hn::MulAdd(hn::Set(d, scores[u]), load_as_float(d, row + i), sum);
    }
    hn::StoreU(sum, d, out.data() + i);
  });
}

void attend_positions_kernel(const KvLayer& layer, std::int64_t slot, std::int64_t kv_head, std::span<const float> q,
                             float scale, std::span<const std::int32_t> positions, std::span<float> scores,
                             std::span<float> out) {
  const std::int64_t keys = layer.key_offset(slot, kv_head, 0);
  const std::int64_t values = layer.value_offset(slot, kv_head, 0);
  const auto attend = [&]<class T>(const T* all_keys, const T* all_values) {
    attend_positions(all_keys + keys, all_values + values, layer.padded_head_dim(), q, scale, positions, scores, out);
  };
  if (layer.dtype == DType::f32) {
    attend(reinterpret_cast<const float*>(layer.keys), reinterpret_cast<const float*>(layer.values));
  } else {
    attend(reinterpret_cast<const Half*>(layer.keys), reinterpret_cast<const Half*>(layer.values));
  }
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(attend_positions_kernel);

namespace {

/// Calls see(position) for everything that a row sees, in order.
template <class See>
void for_each_position(std::span<const std::int32_t> chosen, std::int64_t position, std::int64_t block,
                       const See& see) {
  for (const std::int32_t number : chosen) {
    if (number < 0) break;
    for (std::int64_t p = number * block; p < (number + 1) * block; ++p) see(static_cast<std::int32_t>(p));
  }
  for (std::int64_t p = (position + 1) / block * block; p <= position; ++p) see(static_cast<std::int32_t>(p));
}

}  // namespace

void block_attention(const KvLayer& layer, MatrixView<const float> q, const RowPlaces& places,
                     MatrixView<const std::int32_t> chosen, const BlockAttentionRule& rule,
                     BlockAttentionScratch& scratch, MatrixView<float> out, ThreadTeam& team) {
  check(q.cols == rule.heads * layer.head_dim && out.cols == q.cols && out.rows == q.rows && chosen.rows == q.rows &&
            rule.heads % layer.kv_heads == 0,
        "attention's shapes agree");
  const std::int64_t most = (chosen.cols + 1) * rule.block;
  scratch.members.resize(std::max(scratch.members.size(), static_cast<std::size_t>(team.size())));
  for (BlockAttentionScratch::Member& member : scratch.members) {
    member.positions.resize(std::max(member.positions.size(), static_cast<std::size_t>(most)));
    member.scores.resize(member.positions.size());
  }
  const std::int64_t sharing = rule.heads / layer.kv_heads;
  // A task is one head of one row; neighbouring heads see the same positions.
  const std::int64_t tasks = q.rows * rule.heads;
  const std::int64_t members = worthwhile_members(tasks, 2 * most * layer.head_dim, team.size());
  for_members(team, members, tasks, [&](int member, std::int64_t begin, std::int64_t end) {
    BlockAttentionScratch::Member& own = scratch.members[static_cast<std::size_t>(member)];
    std::size_t seen = 0;
    std::int64_t listed = -1;
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t t = task / rule.heads;
      const std::int64_t head = task % rule.heads;
      const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
      if (t != listed) {
        const std::int64_t position = places.positions[static_cast<std::size_t>(t)];
        check(slot >= 0 && slot < layer.slots && position >= 0 && position < layer.capacity, "a row has a place");
        seen = 0;
        for_each_position(chosen.row(t), position, rule.block, [&](std::int32_t p) { own.positions[seen++] = p; });
        check(seen > 0 && own.positions[seen - 1] <= position, "a row sees something, and nothing after itself");
        listed = t;
      }
      const auto first = static_cast<std::size_t>(head * layer.head_dim);
      const auto count = static_cast<std::size_t>(layer.head_dim);
      HWY_DYNAMIC_DISPATCH(attend_positions_kernel)
      (layer, slot, head / sharing, q.row(t).subspan(first, count), rule.scale, {own.positions.data(), seen},
       {own.scores.data(), seen}, out.row(t).subspan(first, count));
    }
  });
}

void block_attention_reference(const KvLayer& layer, MatrixView<const float> q, const RowPlaces& places,
                               MatrixView<const std::int32_t> chosen, const BlockAttentionRule& rule,
                               MatrixView<double> out) {
  const auto dim = static_cast<std::size_t>(layer.head_dim);
  for (std::int64_t t = 0; t < q.rows; ++t) {
    const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
    const std::int64_t position = places.positions[static_cast<std::size_t>(t)];
    for (std::int64_t head = 0; head < rule.heads; ++head) {
      const std::int64_t kv_head = head / (rule.heads / layer.kv_heads);
      const std::span<const float> query = q.row(t).subspan(static_cast<std::size_t>(head) * dim, dim);
      const std::span<double> sum = out.row(t).subspan(static_cast<std::size_t>(head) * dim, dim);
      std::fill(sum.begin(), sum.end(), 0.0);
      double total = 0;
      for_each_position(chosen.row(t), position, rule.block, [&](std::int32_t p) {
        double score = 0;
        for (std::size_t i = 0; i < dim; ++i) {
          score += static_cast<double>(query[i]) * key_at(layer, slot, kv_head, p, static_cast<std::int64_t>(i));
        }
        const double weight = std::exp(score * rule.scale);
        total += weight;
        for (std::size_t i = 0; i < dim; ++i) {
          sum[i] += weight * value_at(layer, slot, kv_head, p, static_cast<std::int64_t>(i));
        }
      });
      for (double& value : sum) value /= total;
    }
  }
}

}  // namespace qpn8::cpu
#endif
