#include "measure/operator_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include "measure/random_weights.hpp"
#include "qpn8/error.hpp"
#include "qpn8/half.hpp"

namespace qpn8 {
namespace {

// A sample reads about this much, or the whole rotation if that is less: long enough for the clock, short enough to
// alternate.
constexpr std::int64_t kSampleBytes = std::int64_t{64} << 20;
// The same of a GPU, whose memory is a hundred times as fast.
constexpr std::int64_t kGpuSampleBytes = std::int64_t{4} << 30;
// Products of many rows are bound by arithmetic; reading as much would take seconds.
constexpr std::int64_t kSampleRows = 64;

/// Copies of one weight that calls walk through in turn, so that each finds its own in memory and not in a cache.
class Rotation {
 public:
  Rotation(Backend& backend, const PlannedProjection& plan, std::int64_t bytes)
      : plan_(plan), weights_(plan.tensor.k, plan.tensor.type) {
    do {
      copies_.push_back(backend.load_linear(weights_.source(plan_)));
    } while (static_cast<std::int64_t>(copies_.size()) * copies_.front()->bytes() < bytes);
  }

  const PlannedProjection& plan() const { return plan_; }
  std::int64_t bytes() const { return copies_.front()->bytes(); }
  const Linear& next() { return *copies_[turn_++ % copies_.size()]; }

 private:
  PlannedProjection plan_;  // the sources point at it
  RandomWeights weights_;
  std::vector<std::unique_ptr<Linear>> copies_;
  std::size_t turn_ = 0;
};

/// Calls with m rows of the weights of one rotation.
class Call {
 public:
  /// `variant` tells it from other calls that a device may have recorded.
  Call(Backend& backend, Rotation& rotation, std::int64_t rotation_bytes, std::int64_t m, int variant)
      : backend_(backend),
        variant_(variant),
        rotation_(rotation),
        m_(m),
        x_(backend.allocate(backend.activation_type(), m, rotation.plan().tensor.k)),
        y_(backend.allocate(backend.activation_type(), m, rotation.plan().tensor.n)) {
    write_values(backend, x_.tensor, random_values(m * rotation.plan().tensor.k));
    const bool on_cpu = backend.hardware().kind == HardwareKind::cpu;
    const std::int64_t wanted = on_cpu ? std::min(kSampleBytes, rotation_bytes) : kGpuSampleBytes;
    const std::int64_t by_bytes = (wanted + rotation.bytes() - 1) / rotation.bytes();
    batch_.rows = m;
    calls_ = std::max<std::int64_t>(1, m > kMaxPackedRows ? by_bytes * kMaxPackedRows / kSampleRows : by_bytes);
  }

  /// Seconds a call.
  double sample() {
    const auto calls = [this] {
      for (std::int64_t i = 0; i < calls_; ++i) backend_.linear(rotation_.next(), x_.tensor, y_.tensor);
    };
    const double seconds = seconds_of([&] {
      backend_.run_step(batch_, variant_, calls);
      require_finite();
    });
    return seconds / static_cast<double>(calls_);
  }

  std::int64_t m() const { return m_; }
  const Rotation& rotation() const { return rotation_; }

 private:
  /// The read makes sure that the results are there. A fault that makes garbage often makes it quickly.
  void require_finite() {
    std::array<std::byte, sizeof(float)> bytes{};
    const std::size_t size = size_of(y_.tensor.dtype);
    backend_.read(y_.tensor.row_range(m_ - 1, 1).col_range(y_.tensor.cols - 1, 1), std::span(bytes).first(size));
    float value = 0;
    if (size == sizeof(float)) {
      std::memcpy(&value, bytes.data(), size);
    } else {
      Half half;
      std::memcpy(&half, bytes.data(), size);
      value = to_float(half);
    }
    if (std::isfinite(value)) return;
    throw Error(Error::check_failed, fmt::format("{} at {} rows: its result is not finite, so its time means nothing",
                                                 rotation_.plan().tensor.role, m_));
  }

  Backend& backend_;
  int variant_;
  Rotation& rotation_;
  std::int64_t m_;
  Batch batch_;
  std::int64_t calls_ = 1;
  OwnedTensor x_;
  OwnedTensor y_;
};

PlannedProjection on_route(PlannedProjection projection, Route route) {
  projection.route = route;
  return projection;
}

std::vector<Route> routes_of(const PlannedProjection& projection, bool dense_too) {
  std::vector<Route> routes;
  if (projection.route == Route::qpn8) routes.push_back(Route::qpn8);
  if (dense_too || routes.empty()) routes.push_back(Route::dense);
  return routes;
}

auto identity(const PlannedProjection& projection) {
  const TensorDesc& tensor = projection.tensor;
  return std::tuple(tensor.role, tensor.k, tensor.n, tensor.type, projection.route, to_string(projection.schedule));
}

}  // namespace

Samples OperatorResult::bandwidth_fraction() const { return ratios(rates(static_cast<double>(bytes), seconds), probe); }

std::vector<PlannedProjection> distinct_operators(const Plan& plan) {
  std::vector<PlannedProjection> distinct;
  for (const PlannedProjection& projection : plan.projections()) {
    const bool known = std::any_of(distinct.begin(), distinct.end(), [&](const PlannedProjection& other) {
      return identity(other) == identity(projection);
    });
    if (!known) distinct.push_back(projection);
  }
  return distinct;
}

PlannedProjection beyond_cache_operator(const PlannedProjection& model, std::int64_t bytes) {
  PlannedProjection projection = model;
  projection.name = kBeyondCacheRole;
  projection.tensor.role = kBeyondCacheRole;
  projection.tensor.n = (bytes / model.tensor.k + kTileColumns - 1) / kTileColumns * kTileColumns;
  projection.padded_n = projection.tensor.n;
  return projection;
}

std::int64_t default_rotation_bytes(const Hardware& hardware) {
  return (hardware.kind == HardwareKind::cpu ? 2 : 8) * cache_bytes(hardware);
}

std::int64_t samples_of_operator(const PlannedProjection& projection, bool dense_too, const OperatorOptions& options) {
  const auto candidates = routes_of(projection, dense_too).size() * options.rows.size() + 1;
  return static_cast<std::int64_t>(candidates) * (options.repeats.warmups + options.repeats.counted);
}

std::vector<OperatorResult> measure_operator(Backend& backend, MachineProbe& probe, const PlannedProjection& projection,
                                             bool dense_too, const OperatorOptions& options,
                                             const std::function<void()>& on_sample) {
  std::vector<std::unique_ptr<Rotation>> rotations;
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::function<double()>> candidates = {[&] { return probe.read_bytes_per_s(options.rotation_bytes); }};
  for (const Route route : routes_of(projection, dense_too)) {
    rotations.push_back(std::make_unique<Rotation>(backend, on_route(projection, route), options.rotation_bytes));
    for (const std::int64_t m : options.rows) {
      calls.push_back(std::make_unique<Call>(backend, *rotations.back(), options.rotation_bytes, m,
                                             static_cast<int>(calls.size())));
      candidates.emplace_back([call = calls.back().get()] { return call->sample(); });
    }
  }
  std::vector<Samples> samples = measure_alternating(candidates, options.repeats, on_sample);

  backend.forget_steps();

  std::vector<OperatorResult> results;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const PlannedProjection& plan = calls[i]->rotation().plan();
    results.push_back({.role = plan.tensor.role,
                       .k = plan.tensor.k,
                       .n = plan.tensor.n,
                       .m = calls[i]->m(),
                       .route = plan.route,
                       .bytes = calls[i]->rotation().bytes(),
                       .seconds = std::move(samples[i + 1]),
                       .probe = samples.front()});
  }
  return results;
}

}  // namespace qpn8
