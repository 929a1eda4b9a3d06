#include "kernels/cpu/gated_streams.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/divide_up.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gated_streams.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

void normalise_kernel(std::span<const float> x, const float* weight, float eps, float* out) {
  const float inverse = 1.0F / std::sqrt(sum_of_squares(x.data(), x.size()) / static_cast<float>(x.size()) + eps);
  for_vectors(x.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto unit = hn::Mul(hn::LoadU(d, x.data() + i), hn::Set(d, inverse));
    hn::StoreU(hn::Mul(unit, hn::LoadU(d, weight + i)), d, out + i);
  });
}

void scaled_silu_kernel(std::span<float> x, float factor) {
  for_vectors(x.size(), [&](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(silu(d, hn::Mul(hn::LoadU(d, x.data() + i), hn::Set(d, factor))), d, x.data() + i);
  });
}

/// x = a run of the mean; streams lie `width` apart.
void mix_kernel(const float* normed, const float* gates, std::size_t width, std::size_t streams, std::span<float> x) {
  const float share = 1.0F / static_cast<float>(streams);
  for_vectors(x.size(), [&](auto d, std::size_t i) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (std::size_t s = 0; s < streams; ++s) {
      const auto gate = sigmoid(d, hn::LoadU(d, gates + s * width + i));
      sum = hn::MulAdd(gate, hn::LoadU(d, normed + s * width + i), sum);
    }
    hn::StoreU(hn::Mul(sum, hn::Set(d, share)), d, x.data() + i);
  });
}

void add_times_kernel(std::span<float> x, const float* y, float factor) {
  for_vectors(x.size(), [&](auto d, std::size_t i) HWY_ATTR {
    const auto sum = hn::MulAdd(hn::Set(d, factor), hn::LoadU(d, y + i), hn::LoadU(d, x.data() + i));
    hn::StoreU(sum, d, x.data() + i);
  });
}

void gate_values_kernel(std::span<const float> key, const float* query, const float* value, float* out) {
  const float score = dot(key.data(), query, key.size()) / std::sqrt(static_cast<float>(key.size()));
  const float root = std::copysign(std::sqrt(std::max(std::abs(score), 1e-6F)), score);
  const float gate = 1.0F / (1.0F + std::exp(score == 0.0F ? -0.0F : -root));
  for_vectors(key.size(), [&](auto d, std::size_t i)
                              HWY_ATTR { hn::StoreU(hn::Mul(hn::Set(d, gate), hn::LoadU(d, value + i)), d, out + i); });
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(normalise_kernel);
HWY_EXPORT(scaled_silu_kernel);
HWY_EXPORT(mix_kernel);
HWY_EXPORT(add_times_kernel);
HWY_EXPORT(gate_values_kernel);

namespace {

// Values of a stream that are worth a task of their own: one token's streams are shared among threads.
constexpr std::int64_t kRun = 512;

/// Calls body(t, s) for every stream of every row, in parallel.
template <class Body>
void for_streams(std::int64_t rows, std::int64_t streams, std::int64_t cost, ThreadTeam& team, const Body& body) {
  team.for_ranges(rows * streams, row_grain(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) body(task / streams, task % streams);
  });
}

std::span<const float> stream_of(MatrixView<const float> h, std::int64_t t, std::int64_t s, std::int64_t width) {
  return h.row(t).subspan(static_cast<std::size_t>(s * width), static_cast<std::size_t>(width));
}

double sigmoid_of(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

void normalise_streams(MatrixView<const float> h, std::span<const float> weight, std::int64_t streams, float eps,
                       MatrixView<float> out, ThreadTeam& team) {
  check(streams >= 1 && h.cols % streams == 0 && static_cast<std::int64_t>(weight.size()) == h.cols &&
            out.rows == h.rows && out.cols == h.cols,
        "a weight for every stream");
  const std::int64_t width = h.cols / streams;
  for_streams(h.rows, streams, 2 * width, team, [&](std::int64_t t, std::int64_t s) {
    HWY_DYNAMIC_DISPATCH(normalise_kernel)
    (stream_of(h, t, s, width), weight.data() + s * width, eps, out.row(t).data() + s * width);
  });
}

void scaled_silu(MatrixView<float> x, float factor, ThreadTeam& team) {
  team.for_ranges(x.rows, row_grain(4 * x.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) HWY_DYNAMIC_DISPATCH(scaled_silu_kernel)(x.row(t), factor);
  });
}

void mix_streams(MatrixView<const float> normed, MatrixView<const float> gates, MatrixView<float> x, ThreadTeam& team) {
  check(x.cols > 0 && normed.cols % x.cols == 0 && gates.cols == normed.cols && gates.rows == normed.rows &&
            x.rows == normed.rows,
        "a gate for every value of every stream");
  const std::int64_t streams = normed.cols / x.cols;
  const std::int64_t runs = divide_up(x.cols, kRun);
  for_streams(x.rows, runs, 4 * streams * kRun, team, [&](std::int64_t t, std::int64_t run) {
    const std::int64_t first = run * kRun;
    HWY_DYNAMIC_DISPATCH(mix_kernel)
    (normed.row(t).data() + first, gates.row(t).data() + first, static_cast<std::size_t>(x.cols),
     static_cast<std::size_t>(streams),
     x.row(t).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(std::min(kRun, x.cols - first))));
  });
}

void mix_run(const float* normed, const float* gates, std::int64_t width, std::int64_t streams, std::span<float> x) {
  HWY_DYNAMIC_DISPATCH(mix_kernel)
  (normed, gates, static_cast<std::size_t>(width), static_cast<std::size_t>(streams), x);
}

void inject_streams(MatrixView<float> h, MatrixView<const float> gates, MatrixView<const float> y, ThreadTeam& team) {
  const std::int64_t streams = gates.cols;
  check(h.cols == streams * y.cols && gates.rows == h.rows && y.rows == h.rows, "a gate for every stream");
  for_streams(h.rows, streams, y.cols, team, [&](std::int64_t t, std::int64_t s) {
    const float gate = gates.row(t)[static_cast<std::size_t>(s)] / static_cast<float>(streams);
    const auto width = static_cast<std::size_t>(y.cols);
    HWY_DYNAMIC_DISPATCH(add_times_kernel)
    (h.row(t).subspan(static_cast<std::size_t>(s) * width, width), y.row(t).data(), 2.0F / (1.0F + std::exp(-gate)));
  });
}

void gate_values(MatrixView<const float> keys, MatrixView<const float> queries, MatrixView<const float> value,
                 MatrixView<float> out, ThreadTeam& team) {
  check(value.cols > 0 && keys.cols % value.cols == 0 && queries.cols == keys.cols && out.cols == keys.cols &&
            queries.rows == keys.rows && value.rows == keys.rows && out.rows == keys.rows,
        "shapes of gated values agree");
  const std::int64_t width = value.cols;
  for_streams(keys.rows, keys.cols / width, 2 * width, team, [&](std::int64_t t, std::int64_t s) {
    HWY_DYNAMIC_DISPATCH(gate_values_kernel)
    (stream_of(keys, t, s, width), queries.row(t).data() + s * width, value.row(t).data(),
     out.row(t).data() + s * width);
  });
}

void normalise_streams_reference(MatrixView<const float> h, std::span<const float> weight, std::int64_t streams,
                                 float eps, MatrixView<double> out) {
  const std::int64_t width = h.cols / streams;
  for (std::int64_t t = 0; t < h.rows; ++t) {
    for (std::int64_t s = 0; s < streams; ++s) {
      double squares = 0;
      for (const float value : stream_of(h, t, s, width)) squares += static_cast<double>(value) * value;
      const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(width) + eps);
      for (std::int64_t i = s * width; i < (s + 1) * width; ++i) {
        const auto at = static_cast<std::size_t>(i);
        out.row(t)[at] = h.row(t)[at] * inverse * weight[at];
      }
    }
  }
}

void mix_streams_reference(MatrixView<const float> normed, MatrixView<const float> gates, MatrixView<double> x) {
  const auto width = static_cast<std::size_t>(x.cols);
  const std::size_t streams = static_cast<std::size_t>(normed.cols) / width;
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::size_t i = 0; i < width; ++i) {
      double sum = 0;
      for (std::size_t s = 0; s < streams; ++s) {
        sum += sigmoid_of(gates.row(t)[s * width + i]) * normed.row(t)[s * width + i];
      }
      x.row(t)[i] = sum / static_cast<double>(streams);
    }
  }
}

void inject_streams_reference(MatrixView<const float> h, MatrixView<const float> gates, MatrixView<const float> y,
                              MatrixView<double> out) {
  const auto width = static_cast<std::size_t>(y.cols);
  for (std::int64_t t = 0; t < h.rows; ++t) {
    for (std::size_t s = 0; s < gates.row(t).size(); ++s) {
      const double gate = 2.0 * sigmoid_of(gates.row(t)[s] / static_cast<double>(gates.cols));
      for (std::size_t i = 0; i < width; ++i) out.row(t)[s * width + i] = h.row(t)[s * width + i] + gate * y.row(t)[i];
    }
  }
}

void gate_values_reference(MatrixView<const float> keys, MatrixView<const float> queries, MatrixView<const float> value,
                           MatrixView<double> out) {
  const auto width = static_cast<std::size_t>(value.cols);
  for (std::int64_t t = 0; t < keys.rows; ++t) {
    for (std::size_t first = 0; first < keys.row(t).size(); first += width) {
      double score = 0;
      for (std::size_t i = first; i < first + width; ++i) {
        score += static_cast<double>(keys.row(t)[i]) * queries.row(t)[i];
      }
      score /= std::sqrt(static_cast<double>(width));
      const double sign = score > 0 ? 1.0 : score < 0 ? -1.0 : 0.0;
      const double gate = sigmoid_of(sign * std::sqrt(std::max(std::abs(score), 1e-6)));
      for (std::size_t i = 0; i < width; ++i) out.row(t)[first + i] = gate * value.row(t)[i];
    }
  }
}

}  // namespace qpn8::cpu
#endif
