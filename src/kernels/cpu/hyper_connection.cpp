#include "kernels/cpu/hyper_connection.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/hyper_connection.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

float inverse_rms_kernel(std::span<const float> row, float eps) {
  return 1.0F / std::sqrt(sum_of_squares(row.data(), row.size()) / static_cast<float>(row.size()) + eps);
}

void collapse_kernel(const float* h, const float* weights, std::size_t streams, std::span<float> x) {
  for_vectors(x.size(), [&](auto d, std::size_t i) HWY_ATTR {
    auto sum = hn::Mul(hn::Set(d, weights[0]), hn::LoadU(d, h + i));
    for (std::size_t s = 1; s < streams; ++s) {
      sum = hn::MulAdd(hn::Set(d, weights[s]), hn::LoadU(d, h + s * x.size() + i), sum);
    }
    hn::StoreU(sum, d, x.data() + i);
  });
}

void expand_kernel(float* h, const float* weights, std::size_t streams, std::span<const float> y) {
  const float* mix = weights + 2 * streams;
  for_vectors(y.size(), [&](auto d, std::size_t i) HWY_ATTR {
    hn::Vec<decltype(d)> before[kMostStreams];
    for (std::size_t j = 0; j < streams; ++j) before[j] = hn::LoadU(d, h + j * y.size() + i);
    const auto added = hn::LoadU(d, y.data() + i);
    for (std::size_t k = 0; k < streams; ++k) {
      auto sum = hn::Mul(hn::Set(d, weights[streams + k]), added);
      for (std::size_t j = 0; j < streams; ++j) {
        sum = hn::MulAdd(hn::Set(d, mix[j * streams + k]), before[j], sum);
      }
      hn::StoreU(sum, d, h + k * y.size() + i);
    }
  });
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(inverse_rms_kernel);
HWY_EXPORT(collapse_kernel);
HWY_EXPORT(expand_kernel);

namespace {

template <class T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

/// An n x n matrix, row-major.
template <class T>
struct Square {
  std::span<T> values;
  std::size_t n = 0;

  T& at(std::size_t j, std::size_t k) const { return values[j * n + k]; }

  void soften_rows(T eps) const {
    for (std::size_t j = 0; j < n; ++j) {
      const std::span<T> row = values.subspan(j * n, n);
      const T largest = *std::max_element(row.begin(), row.end());
      T total = 0;
      for (T& value : row) total += value = std::exp(value - largest);
      for (T& value : row) value = value / total + eps;
    }
  }
  void normalise_rows(T eps) const {
    for (std::size_t j = 0; j < n; ++j) {
      T total = eps;
      for (std::size_t k = 0; k < n; ++k) total += at(j, k);
      for (std::size_t k = 0; k < n; ++k) at(j, k) /= total;
    }
  }
  void normalise_columns(T eps) const {
    for (std::size_t k = 0; k < n; ++k) {
      T total = eps;
      for (std::size_t j = 0; j < n; ++j) total += at(j, k);
      for (std::size_t j = 0; j < n; ++j) at(j, k) /= total;
    }
  }
};

template <class T>
void row_weights(T inverse_rms, std::span<const float> z, const StreamMaps& maps, const StreamRule& rule,
                 std::span<T> weights) {
  const auto n = static_cast<std::size_t>(rule.streams);
  const auto eps = static_cast<T>(rule.eps);
  const auto mapped = [&](std::size_t i) {
    const std::size_t part = i < n ? 0 : i < 2 * n ? 1 : 2;
    return static_cast<T>(z[i]) * inverse_rms * static_cast<T>(maps.scale[part]) + static_cast<T>(maps.base[i]);
  };
  for (std::size_t i = 0; i < n; ++i) weights[i] = sigmoid(mapped(i)) + eps;
  if (z.size() == n) return;
  for (std::size_t i = n; i < 2 * n; ++i) weights[i] = T{2} * sigmoid(mapped(i));
  for (std::size_t i = 2 * n; i < z.size(); ++i) weights[i] = mapped(i);
  const Square<T> mix{weights.subspan(2 * n), n};
  mix.soften_rows(eps);
  mix.normalise_columns(eps);
  for (std::int64_t step = 1; step < rule.sinkhorn_steps; ++step) {
    mix.normalise_rows(eps);
    mix.normalise_columns(eps);
  }
}

void check_maps(MatrixView<const float> h, const StreamMaps& maps, const StreamRule& rule) {
  const std::int64_t n = rule.streams;
  const bool last = maps.z.cols == n;
  check(n >= 1 && n <= kMostStreams && h.cols % n == 0 && maps.z.rows == h.rows &&
            (last || maps.z.cols == (2 + n) * n) && static_cast<std::int64_t>(maps.base.size()) == maps.z.cols &&
            maps.scale.size() == (last ? 1U : 3U),
        "the maps of a residual's streams agree");
}

}  // namespace

void stream_weights(MatrixView<const float> h, const StreamMaps& maps, const StreamRule& rule,
                    MatrixView<float> weights, ThreadTeam& team) {
  check_maps(h, maps, rule);
  check(weights.rows == h.rows && weights.cols == maps.z.cols, "a row of weights for every row");
  // A division and an addition a value and normalisation.
  const std::int64_t cost = h.cols + 10 * rule.sinkhorn_steps * maps.z.cols;
  team.for_ranges(h.rows, row_grain(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const float inverse = HWY_DYNAMIC_DISPATCH(inverse_rms_kernel)(h.row(t), rule.norm_eps);
      row_weights<float>(inverse, maps.z.row(t), maps, rule, weights.row(t));
    }
  });
}

void collapse_streams(MatrixView<const float> h, MatrixView<const float> weights, MatrixView<float> x,
                      ThreadTeam& team) {
  check(x.cols > 0 && h.cols % x.cols == 0 && h.cols / x.cols <= weights.cols && x.rows == h.rows &&
            weights.rows == h.rows,
        "streams are as wide as their sum");
  const auto streams = static_cast<std::size_t>(h.cols / x.cols);
  team.for_ranges(h.rows, row_grain(h.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      HWY_DYNAMIC_DISPATCH(collapse_kernel)(h.row(t).data(), weights.row(t).data(), streams, x.row(t));
    }
  });
}

void expand_streams(MatrixView<float> h, MatrixView<const float> weights, MatrixView<const float> y, ThreadTeam& team) {
  check(y.cols > 0 && h.cols % y.cols == 0 && h.cols / y.cols <= kMostStreams && y.rows == h.rows &&
            weights.rows == h.rows && weights.cols == (2 + h.cols / y.cols) * (h.cols / y.cols),
        "streams are as wide as what is added");
  const auto streams = static_cast<std::size_t>(h.cols / y.cols);
  team.for_ranges(h.rows, row_grain(4 * h.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      HWY_DYNAMIC_DISPATCH(expand_kernel)(h.row(t).data(), weights.row(t).data(), streams, y.row(t));
    }
  });
}

void stream_weights_reference(MatrixView<const float> h, const StreamMaps& maps, const StreamRule& rule,
                              MatrixView<double> weights) {
  for (std::int64_t t = 0; t < h.rows; ++t) {
    double squares = 0;
    for (const float value : h.row(t)) squares += static_cast<double>(value) * value;
    const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(h.cols) + rule.norm_eps);
    row_weights<double>(inverse, maps.z.row(t), maps, rule, weights.row(t));
  }
}

void collapse_streams_reference(MatrixView<const float> h, MatrixView<const float> weights, MatrixView<double> x) {
  for (std::int64_t t = 0; t < h.rows; ++t) {
    for (std::size_t i = 0; i < x.row(t).size(); ++i) {
      x.row(t)[i] = 0;
      for (std::size_t s = 0; s < h.row(t).size() / x.row(t).size(); ++s) {
        x.row(t)[i] += static_cast<double>(weights.row(t)[s]) * h.row(t)[s * x.row(t).size() + i];
      }
    }
  }
}

void expand_streams_reference(MatrixView<const float> h, MatrixView<const float> weights, MatrixView<const float> y,
                              MatrixView<double> out) {
  const auto d = static_cast<std::size_t>(y.cols);
  const std::size_t n = static_cast<std::size_t>(h.cols) / d;
  for (std::int64_t t = 0; t < h.rows; ++t) {
    const std::span<const float> w = weights.row(t);
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t i = 0; i < d; ++i) {
        double sum = static_cast<double>(w[n + k]) * y.row(t)[i];
        for (std::size_t j = 0; j < n; ++j) {
          sum += static_cast<double>(w[2 * n + j * n + k]) * h.row(t)[j * d + i];
        }
        out.row(t)[k * d + i] = sum;
      }
    }
  }
}

}  // namespace qpn8::cpu
#endif
