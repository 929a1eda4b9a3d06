#include "kernels/cpu/delta_rule.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/divide_up.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/delta_rule.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

void scale_to_length_kernel(std::span<float> x, float length) {
  const float factor = length / std::sqrt(sum_of_squares(x.data(), x.size()) + 1e-6F);
  for_vectors(x.size(), [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, x.data() + i), hn::Set(d, factor)), d, x.data() + i);
  });
}

/// One token: S is walked twice, a vector of columns at a time.
void delta_step_kernel(float* state, std::span<const float> q, const float* k, std::span<const float> v, float beta,
                       float decay, float* out) {
  const std::size_t stride = v.size();
  for_vectors(v.size(), [&](auto d, std::size_t j) HWY_ATTR {
    auto even = hn::Zero(d);
    auto odd = hn::Zero(d);
    std::size_t i = 0;
    for (; i + 2 <= q.size(); i += 2) {
      even = hn::MulAdd(hn::LoadU(d, state + i * stride + j), hn::Set(d, k[i]), even);
      odd = hn::MulAdd(hn::LoadU(d, state + (i + 1) * stride + j), hn::Set(d, k[i + 1]), odd);
    }
    if (i < q.size()) even = hn::MulAdd(hn::LoadU(d, state + i * stride + j), hn::Set(d, k[i]), even);
    const auto g = hn::Set(d, decay);
    const auto recalled = hn::Mul(g, hn::Add(even, odd));
    const auto delta = hn::Mul(hn::Set(d, beta), hn::Sub(hn::LoadU(d, v.data() + j), recalled));
    auto sum = hn::Zero(d);
    for (i = 0; i < q.size(); ++i) {
      const auto written = hn::Mul(hn::Set(d, k[i]), delta);
      const auto s = hn::MulAdd(g, hn::LoadU(d, state + i * stride + j), written);
      hn::StoreU(s, d, state + i * stride + j);
      sum = hn::MulAdd(s, hn::Set(d, q[i]), sum);
    }
    hn::StoreU(sum, d, out + j);
  });
}

/// out[r] = S^T x[r] for rows at `stride`, eight at a time, so that S is read once for them.
void recall_kernel(const float* state, std::int64_t key_dim, MatrixView<const float> x, MatrixView<float> out) {
  constexpr std::size_t kTogether = 8;
  const auto width = static_cast<std::size_t>(out.cols);
  for (std::int64_t first = 0; first < x.rows; first += kTogether) {
    const auto rows = static_cast<std::size_t>(std::min<std::int64_t>(kTogether, x.rows - first));
    for_vectors(width, [&](auto d, std::size_t j) HWY_ATTR {
      hn::Vec<decltype(d)> sums[kTogether];
      for (auto& sum : sums) sum = hn::Zero(d);
      for (std::size_t i = 0; i < static_cast<std::size_t>(key_dim); ++i) {
        const auto s = hn::LoadU(d, state + i * width + j);
        for (std::size_t r = 0; r < rows; ++r) {
          const float factor = x.row(first + static_cast<std::int64_t>(r))[i];
          sums[r] = hn::MulAdd(s, hn::Set(d, factor), sums[r]);
        }
      }
      for (std::size_t r = 0; r < rows; ++r) {
        hn::StoreU(sums[r], d, out.row(first + static_cast<std::int64_t>(r)).data() + j);
      }
    });
  }
}

/// sum += sum over r of factors[r] * rows[r].
void add_combination_kernel(MatrixView<const float> rows, std::span<const float> factors, std::span<float> sum) {
  for_vectors(sum.size(), [&](auto d, std::size_t j) HWY_ATTR {
    auto total = hn::LoadU(d, sum.data() + j);
    for (std::size_t r = 0; r < factors.size(); ++r) {
      total =
          hn::MulAdd(hn::Set(d, factors[r]), hn::LoadU(d, rows.row(static_cast<std::int64_t>(r)).data() + j), total);
    }
    hn::StoreU(total, d, sum.data() + j);
  });
}

/// S = decay S + sum over r of keys[r] deltas[r]^T.
void update_kernel(float* state, float decay, MatrixView<const float> keys, MatrixView<const float> deltas) {
  constexpr std::int64_t kTogether = 8;
  const auto width = static_cast<std::size_t>(deltas.cols);
  for (std::int64_t first = 0; first < keys.cols; first += kTogether) {
    const auto count = static_cast<std::size_t>(std::min(kTogether, keys.cols - first));
    float* rows = state + static_cast<std::size_t>(first) * width;
    for_vectors(width, [&](auto d, std::size_t j) HWY_ATTR {
      hn::Vec<decltype(d)> sums[kTogether];
      for (std::size_t i = 0; i < kTogether; ++i) {
        sums[i] = i < count ? hn::Mul(hn::Set(d, decay), hn::LoadU(d, rows + i * width + j)) : hn::Zero(d);
      }
      for (std::int64_t r = 0; r < keys.rows; ++r) {
        const auto delta = hn::LoadU(d, deltas.row(r).data() + j);
        const float* key = keys.row(r).data() + first;
        for (std::size_t i = 0; i < count; ++i) sums[i] = hn::MulAdd(hn::Set(d, key[i]), delta, sums[i]);
      }
      for (std::size_t i = 0; i < count; ++i) hn::StoreU(sums[i], d, rows + i * width + j);
    });
  }
}

float dot_kernel(std::span<const float> a, const float* b) { return dot(a.data(), b, a.size()); }

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(delta_step_kernel);
HWY_EXPORT(recall_kernel);
HWY_EXPORT(add_combination_kernel);
HWY_EXPORT(update_kernel);
HWY_EXPORT(scale_to_length_kernel);
HWY_EXPORT(dot_kernel);

namespace {

// Below this many tokens the chunk's products cost more than walking S for each.
constexpr std::int64_t kLeastChunk = 8;

template <class T>
T softplus(T x) {
  return x > T{20} ? x : std::log1p(std::exp(x));
}

/// The decay of a token's step, as the logarithm; at most 0.
template <class T>
T log_decay(const DeltaInputs& inputs, std::int64_t t, std::int64_t head) {
  const auto h = static_cast<std::size_t>(head);
  return -std::exp(static_cast<T>(inputs.decay_log[h])) *
         softplus(static_cast<T>(inputs.a.row(t)[h]) + static_cast<T>(inputs.decay_bias[h]));
}

template <class T>
T strength(const DeltaInputs& inputs, std::int64_t t, std::int64_t head) {
  return T{1} / (T{1} + std::exp(-static_cast<T>(inputs.b.row(t)[static_cast<std::size_t>(head)])));
}

std::int64_t key_head_of(const DeltaShape& shape, std::int64_t head) {
  return head / (shape.value_heads / shape.key_heads);
}

/// One value head's part of q | k | v.
struct HeadColumns {
  HeadColumns(const DeltaShape& shape, std::int64_t head)
      : q(key_head_of(shape, head) * shape.key_dim),
        k(shape.key_heads * shape.key_dim + q),
        v(2 * shape.key_heads * shape.key_dim + head * shape.value_dim) {}

  std::int64_t q;
  std::int64_t k;
  std::int64_t v;
};

/// Memory of a member for one chunk.
struct ChunkMemory {
  ChunkMemory(std::vector<float>& memory, const DeltaShape& shape) {
    const auto rows = static_cast<std::size_t>(kDeltaChunk);
    const auto keys = rows * static_cast<std::size_t>(shape.key_dim);
    const auto values = rows * static_cast<std::size_t>(shape.value_dim);
    memory.resize(std::max(memory.size(), 3 * rows + keys + values));
    decay = {memory.data(), rows};
    beta = {memory.data() + rows, rows};
    factors = {memory.data() + 2 * rows, rows};
    weighted = {memory.data() + 3 * rows, kDeltaChunk, shape.key_dim};
    deltas = {memory.data() + 3 * rows + keys, kDeltaChunk, shape.value_dim};
  }

  std::span<float> decay;  // logarithms, summed from the chunk's beginning
  std::span<float> beta;
  std::span<float> factors;    // of one row
  MatrixView<float> weighted;  // keys, weighed by the decay to the chunk's end
  MatrixView<float> deltas;    // what each token writes
};

/// Tokens of one head of one sequence.
struct HeadRows {
  const DeltaInputs& inputs;
  const DeltaShape& shape;
  std::int64_t head;
  HeadColumns columns;
  float* state;
  MatrixView<float> out;  // all rows, this head's columns

  MatrixView<const float> q(std::int64_t first, std::int64_t rows) const { return part(columns.q, first, rows); }
  MatrixView<const float> k(std::int64_t first, std::int64_t rows) const { return part(columns.k, first, rows); }
  std::span<const float> v(std::int64_t t) const {
    return inputs.qkv.row(t).subspan(static_cast<std::size_t>(columns.v), static_cast<std::size_t>(shape.value_dim));
  }
  MatrixView<const float> part(std::int64_t column, std::int64_t first, std::int64_t rows) const {
    return inputs.qkv.col_range(column, shape.key_dim).row_range(first, rows);
  }
};

void step(const HeadRows& rows, std::int64_t t) {
  HWY_DYNAMIC_DISPATCH(delta_step_kernel)
  (rows.state, rows.q(t, 1).row(0), rows.k(t, 1).row(0).data(), rows.v(t), strength<float>(rows.inputs, t, rows.head),
   std::exp(log_decay<float>(rows.inputs, t, rows.head)), rows.out.row(t).data());
}

/// The chunk-parallel form: what each token writes follows from what S was before the chunk and from what the tokens
/// before it write, a triangular system that is solved row by row.
void run_chunk(const HeadRows& rows, std::int64_t first, std::int64_t count, ChunkMemory& memory) {
  const MatrixView<const float> q = rows.q(first, count);
  const MatrixView<const float> k = rows.k(first, count);
  const MatrixView<float> deltas = memory.deltas.row_range(0, count);
  const MatrixView<float> out = rows.out.row_range(first, count);
  float total = 0.0F;
  for (std::int64_t r = 0; r < count; ++r) {
    const auto at = static_cast<std::size_t>(r);
    total += log_decay<float>(rows.inputs, first + r, rows.head);
    memory.decay[at] = total;
    memory.beta[at] = strength<float>(rows.inputs, first + r, rows.head);
  }
  const auto between = [&](std::int64_t later, std::int64_t earlier) {
    return std::exp(memory.decay[static_cast<std::size_t>(later)] - memory.decay[static_cast<std::size_t>(earlier)]);
  };

  HWY_DYNAMIC_DISPATCH(recall_kernel)(rows.state, rows.shape.key_dim, k, deltas);
  HWY_DYNAMIC_DISPATCH(recall_kernel)(rows.state, rows.shape.key_dim, q, out);
  for (std::int64_t r = 0; r < count; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const std::span<float> delta = deltas.row(r);
    const std::span<const float> v = rows.v(first + r);
    const float decayed = std::exp(memory.decay[at]);
    for (std::size_t j = 0; j < delta.size(); ++j) delta[j] = memory.beta[at] * (v[j] - decayed * delta[j]);
    for (std::int64_t s = 0; s < r; ++s) {
      memory.factors[static_cast<std::size_t>(s)] =
          -memory.beta[at] * HWY_DYNAMIC_DISPATCH(dot_kernel)(k.row(r), k.row(s).data()) * between(r, s);
    }
    HWY_DYNAMIC_DISPATCH(add_combination_kernel)(deltas, memory.factors.first(at), delta);
    for (float& value : out.row(r)) value *= decayed;
    for (std::int64_t s = 0; s <= r; ++s) {
      memory.factors[static_cast<std::size_t>(s)] =
          HWY_DYNAMIC_DISPATCH(dot_kernel)(q.row(r), k.row(s).data()) * between(r, s);
    }
    HWY_DYNAMIC_DISPATCH(add_combination_kernel)(deltas, memory.factors.first(at + 1), out.row(r));
  }
  for (std::int64_t r = 0; r < count; ++r) {
    const float weight = between(count - 1, r);
    for (std::size_t i = 0; i < k.row(r).size(); ++i) memory.weighted.row(r)[i] = weight * k.row(r)[i];
  }
  HWY_DYNAMIC_DISPATCH(update_kernel)(rows.state, std::exp(total), memory.weighted.row_range(0, count), deltas);
}

void run_head(const HeadRows& rows, const DeltaScratch::Run& run, ChunkMemory& memory) {
  if (run.begins) std::fill_n(rows.state, rows.shape.key_dim * rows.shape.value_dim, 0.0F);
  const std::int64_t end = run.first_row + run.rows;
  for (std::int64_t t = run.first_row; t < end;) {
    const std::int64_t count = std::min(kDeltaChunk, end - t);
    if (count >= kLeastChunk) {
      run_chunk(rows, t, count, memory);
      t += count;
    } else {
      step(rows, t++);
    }
  }
}

void find_runs(const RowPlaces& places, std::vector<DeltaScratch::Run>& runs) {
  runs.clear();
  for (std::size_t t = 0; t < places.slots.size(); ++t) {
    const bool continues = t > 0 && places.slots[t] == places.slots[t - 1];
    if (!continues) {
      runs.push_back({static_cast<std::int64_t>(t), 0, places.slots[t], places.positions[t] == 0});
    }
    ++runs.back().rows;
  }
}

void normalise_keys(const DeltaInputs& inputs, const DeltaShape& shape, ThreadTeam& team) {
  const std::int64_t heads = 2 * shape.key_heads;
  const float q_length = 1.0F / std::sqrt(static_cast<float>(shape.key_dim));
  team.for_ranges(inputs.qkv.rows, row_grain(heads * shape.key_dim), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::span<float> x = inputs.qkv.row(t).subspan(static_cast<std::size_t>(head * shape.key_dim),
                                                             static_cast<std::size_t>(shape.key_dim));
        HWY_DYNAMIC_DISPATCH(scale_to_length_kernel)(x, head < shape.key_heads ? q_length : 1.0F);
      }
    }
  });
}

void check_shapes(const DeltaInputs& inputs, const DeltaShape& shape, std::int64_t rows, std::int64_t cols) {
  check(shape.value_heads % shape.key_heads == 0 &&
            inputs.qkv.cols == 2 * shape.key_heads * shape.key_dim + shape.value_heads * shape.value_dim &&
            inputs.b.cols == shape.value_heads && inputs.a.cols == shape.value_heads &&
            static_cast<std::int64_t>(inputs.decay_log.size()) == shape.value_heads &&
            inputs.decay_bias.size() == inputs.decay_log.size() && rows == inputs.qkv.rows &&
            cols == shape.value_heads * shape.value_dim,
        "shapes of a delta rule agree");
}

}  // namespace

void delta_rule(const DeltaInputs& inputs, const RowPlaces& places, const DeltaShape& shape, const RowStore& states,
                DeltaScratch& scratch, MatrixView<float> out, ThreadTeam& team) {
  check_shapes(inputs, shape, out.rows, out.cols);
  check(states.dtype == DType::f32 && states.per_slot == shape.value_heads &&
            states.width == shape.key_dim * shape.value_dim,
        "a state a head");
  normalise_keys(inputs, shape, team);
  find_runs(places, scratch.runs);
  scratch.members.resize(std::max(scratch.members.size(), static_cast<std::size_t>(team.size())));
  const auto tasks = static_cast<std::int64_t>(scratch.runs.size()) * shape.value_heads;
  const std::int64_t cost =
      4 * states.width * divide_up(inputs.qkv.rows, static_cast<std::int64_t>(scratch.runs.size()));
  for_members(team, worthwhile_members(tasks, cost, team.size()), tasks,
              [&](int member, std::int64_t begin, std::int64_t end) {
                ChunkMemory memory(scratch.members[static_cast<std::size_t>(member)], shape);
                for (std::int64_t task = begin; task < end; ++task) {
                  const DeltaScratch::Run& run = scratch.runs[static_cast<std::size_t>(task / shape.value_heads)];
                  const std::int64_t head = task % shape.value_heads;
                  check(run.slot >= 0 && run.slot < states.slots, "a row has a place");
                  const HeadRows rows = {inputs,
                                         shape,
                                         head,
                                         HeadColumns(shape, head),
                                         reinterpret_cast<float*>(states.row(run.slot, head)),
                                         out.col_range(head * shape.value_dim, shape.value_dim)};
                  run_head(rows, run, memory);
                }
              });
}

void delta_rule_reference(const DeltaInputs& inputs, const DeltaShape& shape, MatrixView<double> out) {
  const auto keys = static_cast<std::size_t>(shape.key_dim);
  const auto values = static_cast<std::size_t>(shape.value_dim);
  const auto unit = [&](std::span<const float> x, double length) {
    double squares = 1e-6;
    for (const float value : x) squares += static_cast<double>(value) * value;
    std::vector<double> scaled;
    for (const float value : x) scaled.push_back(value * length / std::sqrt(squares));
    return scaled;
  };
  for (std::int64_t head = 0; head < shape.value_heads; ++head) {
    const HeadColumns columns(shape, head);
    std::vector<double> state(keys * values);
    for (std::int64_t t = 0; t < out.rows; ++t) {
      const std::span<const float> row = inputs.qkv.row(t);
      const std::vector<double> q =
          unit(row.subspan(static_cast<std::size_t>(columns.q), keys), 1.0 / std::sqrt(static_cast<double>(keys)));
      const std::vector<double> k = unit(row.subspan(static_cast<std::size_t>(columns.k), keys), 1.0);
      const double beta = strength<double>(inputs, t, head);
      const double decay = std::exp(log_decay<double>(inputs, t, head));
      for (double& value : state) value *= decay;
      for (std::size_t j = 0; j < values; ++j) {
        double recalled = 0;
        for (std::size_t i = 0; i < keys; ++i) recalled += state[i * values + j] * k[i];
        const double delta = beta * (row[static_cast<std::size_t>(columns.v) + j] - recalled);
        double sum = 0;
        for (std::size_t i = 0; i < keys; ++i) sum += (state[i * values + j] += k[i] * delta) * q[i];
        out.row(t)[static_cast<std::size_t>(head) * values + j] = sum;
      }
    }
  }
}

}  // namespace qpn8::cpu
#endif
