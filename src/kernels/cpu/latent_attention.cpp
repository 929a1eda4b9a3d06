#include "kernels/cpu/latent_attention.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"
#include "kernels/cpu/select_entries.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/latent_attention.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

/// In place: scores become e^(score - largest), the sink among those that are compared. Returns their sum.
float to_weights(std::span<float> scores, float sink) {
  float largest = sink;
  for (const float score : scores) largest = std::max(largest, score);
  for_vectors(scores.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto shifted = hn::Sub(hn::LoadU(d, scores.data() + i), hn::Set(d, largest));
    hn::StoreU(exp_nonpositive(d, shifted), d, scores.data() + i);
  });
  float total = std::exp(sink - largest);
  for (const float weight : scores) total += weight;
  return total;
}

/// out = sum of weights[u] * rows[u] / total, a few vectors of columns at a time so that their sums stay in registers.
template <class T>
void weigh_rows(std::span<const std::byte* const> rows, const float* weights, float total, std::span<float> out) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto inverse = hn::Set(d, 1.0F / total);
  std::size_t i = 0;
  for (; i + 4 * lanes <= out.size(); i += 4 * lanes) {
    auto a = hn::Zero(d);
    auto b = hn::Zero(d);
    auto c = hn::Zero(d);
    auto e = hn::Zero(d);
    for (std::size_t u = 0; u < rows.size(); ++u) {
      const T* row = reinterpret_cast<const T*>(rows[u]) + i;
      const auto weight = hn::Set(d, weights[u]);
      a = hn::MulAdd(weight, load_as_float(d, row), a);
      b = hn::MulAdd(weight, load_as_float(d, row + lanes), b);
      c = hn::MulAdd(weight, load_as_float(d, row + 2 * lanes), c);
      e = hn::MulAdd(weight, load_as_float(d, row + 3 * lanes), e);
    }
    hn::StoreU(hn::Mul(a, inverse), d, out.data() + i);
    hn::StoreU(hn::Mul(b, inverse), d, out.data() + i + lanes);
    hn::StoreU(hn::Mul(c, inverse), d, out.data() + i + 2 * lanes);
    hn::StoreU(hn::Mul(e, inverse), d, out.data() + i + 3 * lanes);
  }
  for (; i < out.size(); ++i) {
    float sum = 0.0F;
    for (std::size_t u = 0; u < rows.size(); ++u) {
      sum += weights[u] * scalar_as_float(reinterpret_cast<const T*>(rows[u])[i]);
    }
    out[i] = sum * (1.0F / total);
  }
}

template <class T>
void attend(std::span<const float> q, std::span<const std::byte* const> rows, float scale, float sink,
            std::span<float> scores, std::span<float> out) {
  for (std::size_t u = 0; u < rows.size(); ++u) {
    scores[u] = scale * dot(reinterpret_cast<const T*>(rows[u]), q.data(), q.size());
  }
  const float total = to_weights(scores, sink);
  weigh_rows<T>(rows, scores.data(), total, out);
}

void attend_kernel(DType dtype, std::span<const float> q, std::span<const std::byte* const> rows, float scale,
                   float sink, std::span<float> scores, std::span<float> out) {
  if (dtype == DType::f32) return attend<float>(q, rows, scale, sink, scores, out);
  attend<Half>(q, rows, scale, sink, scores, out);
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(attend_kernel);

namespace {

/// Calls see(store, index) for everything that row t sees, in order.
template <class See>
void for_each_seen(const LatentSources& sources, const LatentRule& rule, std::int64_t t, std::int64_t position,
                   const See& see) {
  for (std::int64_t u = std::max<std::int64_t>(0, position - rule.window + 1); u <= position; ++u) {
    see(sources.window, u % sources.window.per_slot);
  }
  if (sources.entries.per_slot == 0) return;
  if (sources.chosen.cols == 0) {
    for (std::int64_t w = 0; w < entries_before(position, rule.ratio); ++w) see(sources.entries, w);
    return;
  }
  for (const std::int32_t w : sources.chosen.row(t)) {
    if (w < 0) break;
    see(sources.entries, w);
  }
}

std::int64_t most_seen(const LatentSources& sources, const LatentRule& rule) {
  const std::int64_t entries = sources.chosen.cols > 0 ? sources.chosen.cols : sources.entries.per_slot;
  return rule.window + entries;
}

}  // namespace

void latent_attention(MatrixView<const float> q, const RowPlaces& places, const LatentSources& sources,
                      const LatentRule& rule, LatentScratch& scratch, MatrixView<float> out, ThreadTeam& team) {
  const RowStore& window = sources.window;
  const std::int64_t width = window.width;
  check(
      q.cols == rule.heads * width && out.cols == q.cols && out.rows == q.rows &&
          static_cast<std::int64_t>(sources.sinks.size()) == rule.heads &&
          (sources.entries.per_slot == 0 || (sources.entries.width == width && sources.entries.dtype == window.dtype)),
      "attention's shapes agree");
  scratch.members.resize(std::max(scratch.members.size(), static_cast<std::size_t>(team.size())));
  const auto most = static_cast<std::size_t>(most_seen(sources, rule));
  for (LatentScratch::Member& member : scratch.members) {
    member.rows.resize(std::max(member.rows.size(), most));
    member.scores.resize(std::max(member.scores.size(), most));
  }
  // A task is one head of one row; neighbouring heads see the same rows.
  const std::int64_t tasks = q.rows * rule.heads;
  const std::int64_t members = worthwhile_members(tasks, 2 * most_seen(sources, rule) * width, team.size());
  for_members(team, members, tasks, [&](int member, std::int64_t begin, std::int64_t end) {
    LatentScratch::Member& own = scratch.members[static_cast<std::size_t>(member)];
    std::size_t seen = 0;
    std::int64_t listed = -1;
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t t = task / rule.heads;
      const std::int64_t head = task % rule.heads;
      if (t != listed) {
        const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
        const std::int64_t position = places.positions[static_cast<std::size_t>(t)];
        check(slot >= 0 && slot < window.slots && position >= 0, "a row has a place");
        seen = 0;
        for_each_seen(sources, rule, t, position, [&](const RowStore& store, std::int64_t index) {
          check(index < store.per_slot, "what a row sees is stored");
          own.rows[seen++] = store.row(slot, index);
        });
        listed = t;
      }
      const auto first = static_cast<std::size_t>(head * width);
      const auto count = static_cast<std::size_t>(width);
      HWY_DYNAMIC_DISPATCH(attend_kernel)
      (window.dtype, q.row(t).subspan(first, count), {own.rows.data(), seen}, rule.scale,
       sources.sinks[static_cast<std::size_t>(head)], {own.scores.data(), seen}, out.row(t).subspan(first, count));
    }
  });
}

void latent_attention_reference(MatrixView<const float> q, const RowPlaces& places, const LatentSources& sources,
                                const LatentRule& rule, MatrixView<double> out) {
  const std::int64_t width = sources.window.width;
  for (std::int64_t t = 0; t < q.rows; ++t) {
    const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
    for (std::int64_t head = 0; head < rule.heads; ++head) {
      const std::span<const float> query = q.row(t).subspan(static_cast<std::size_t>(head * width));
      const std::span<double> sum =
          out.row(t).subspan(static_cast<std::size_t>(head * width), static_cast<std::size_t>(width));
      std::fill(sum.begin(), sum.end(), 0.0);
      double total = std::exp(static_cast<double>(sources.sinks[static_cast<std::size_t>(head)]));
      for_each_seen(sources, rule, t, places.positions[static_cast<std::size_t>(t)],
                    [&](const RowStore& store, std::int64_t index) {
                      double score = 0;
                      for (std::int64_t i = 0; i < width; ++i) {
                        score +=
                            static_cast<double>(query[static_cast<std::size_t>(i)]) * value_at(store, slot, index, i);
                      }
                      const double weight = std::exp(score * rule.scale);
                      total += weight;
                      for (std::int64_t i = 0; i < width; ++i) {
                        sum[static_cast<std::size_t>(i)] += weight * value_at(store, slot, index, i);
                      }
                    });
      for (double& value : sum) value /= total;
    }
  }
}

}  // namespace qpn8::cpu
#endif
