#include "measure/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "backend/cpu_backend.hpp"
#include "engine/engine_loader.hpp"
#include "measure/machine_probe.hpp"
#include "measure/operator_bench.hpp"
#include "measure/random_weights.hpp"
#include "qpn8/error.hpp"
#include "qpn8/half.hpp"
#include "qpn8/linear.hpp"
#include "qpn8/pack.hpp"

namespace qpn8 {
namespace {

constexpr int kManyRows = kMaxPackedRows;
constexpr double kLargestError = 1e-5;
constexpr std::int64_t kTuneSampleBytes = std::int64_t{64} << 20;

/// Packed random weights of one shape, as many as no cache holds.
class PackedRotation {
 public:
  PackedRotation(std::int64_t k, std::int64_t n, std::int64_t bytes, ThreadTeam& team) {
    const std::vector<Half> rows = random_rows(k);
    std::vector<RowSource> sources;
    for (std::int64_t left = n; left > 0; left -= kRows) {
      sources.push_back({RowSource::Type::f16, rows.data(), std::min(left, kRows), k});
    }
    do {
      copies_.push_back(pack_channelwise(sources, k, team));
    } while (static_cast<std::int64_t>(copies_.size()) * copies_.front().bytes() < bytes);
  }

  const PackedWeight& next() { return copies_[turn_++ % copies_.size()]; }
  std::int64_t bytes() const { return copies_.front().bytes(); }

 private:
  static constexpr std::int64_t kRows = 1024;

  static std::vector<Half> random_rows(std::int64_t k) {
    const std::vector<float> values = random_values(kRows * k);
    std::vector<Half> rows(values.size());
    std::transform(values.begin(), values.end(), rows.begin(), to_half);
    return rows;
  }

  std::vector<PackedWeight> copies_;
  std::size_t turn_ = 0;
};

Matrix<float> random_matrix(std::int64_t rows, std::int64_t cols) {
  Matrix<float> matrix(rows, cols);
  const std::vector<float> values = random_values(rows * cols);
  std::copy(values.begin(), values.end(), matrix.values().begin());
  return matrix;
}

/// Products of one shape by one team.
class Products {
 public:
  Products(PackedRotation& rotation, std::int64_t rotation_bytes, const TensorDesc& tensor, ThreadTeam& team)
      : rotation_(rotation), team_(team), x_(random_matrix(kManyRows, tensor.k)), y_(kManyRows, tensor.n) {
    calls_ = std::max<std::int64_t>(1, std::min(kTuneSampleBytes, rotation_bytes) / rotation.bytes());
  }

  /// Seconds a product of so many rows.
  double sample(const Schedule& schedule, std::int64_t rows) {
    const double seconds = seconds_of([&] {
      for (std::int64_t i = 0; i < calls_; ++i) {
        multiply(rotation_.next(), schedule, x_.view().row_range(0, rows), y_.view().row_range(0, rows), workspace_,
                 team_);
      }
    });
    return seconds / static_cast<double>(calls_);
  }

 private:
  PackedRotation& rotation_;
  ThreadTeam& team_;
  Matrix<float> x_;
  Matrix<float> y_;
  Workspace workspace_;
  std::int64_t calls_ = 1;
};

/// Compares schedules with the reference on few channels: a schedule walks k alike for all of them.
class Reference {
 public:
  Reference(std::int64_t k, std::int64_t n, ThreadTeam& team)
      : team_(team), x_(random_matrix(kManyRows, k)), expected_(kManyRows, std::min<std::int64_t>(n, kChannels)) {
    std::vector<Half> rows(static_cast<std::size_t>(expected_.cols() * k));
    const std::vector<float> values = random_values(expected_.cols() * k);
    std::transform(values.begin(), values.end(), rows.begin(), to_half);
    weight_ = pack_channelwise(MatrixView<const Half>(rows.data(), expected_.cols(), k), team);
    multiply_reference(weight_, x_.view(), expected_.view());
  }

  double relative_l2(const Schedule& schedule) {
    Matrix<float> y(expected_.rows(), expected_.cols());
    multiply(weight_, schedule, x_.view(), y.view(), workspace_, team_);
    double error = 0;
    double norm = 0;
    for (std::size_t i = 0; i < y.values().size(); ++i) {
      const double expected = expected_.values()[i];
      error += (y.values()[i] - expected) * (y.values()[i] - expected);
      norm += expected * expected;
    }
    return std::sqrt(error / norm);
  }

 private:
  static constexpr std::int64_t kChannels = 8 * kTileColumns;

  ThreadTeam& team_;
  Matrix<float> x_;
  Matrix<double> expected_;
  PackedWeight weight_;
  Workspace workspace_;
};

void require_close(const TensorDesc& tensor, const Schedule& schedule, double error) {
  if (error <= kLargestError) return;  // not if it is NaN
  throw Error(Error::check_failed,
              fmt::format("{} K={} N={}, schedule {}: its numbers are {:.2e} from the reference, at most {:.0e} was "
                          "expected",
                          tensor.role, tensor.k, tensor.n, to_string(schedule), error, kLargestError));
}

std::vector<ScheduleTrial> checked_trials(const TensorDesc& tensor, ThreadTeam& team) {
  Reference reference(tensor.k, tensor.n, team);
  std::vector<ScheduleTrial> trials;
  for (const Schedule& schedule : candidate_schedules(tensor.k)) {
    const double error = reference.relative_l2(schedule);
    require_close(tensor, schedule, error);
    trials.push_back({.schedule = schedule, .relative_l2 = error, .one_row = {}, .eight_rows = {}});
  }
  return trials;
}

/// The one schedule that a GPU's trial has: its kernels choose how they walk a shape by themselves.
constexpr Schedule kGpuSchedule = {.split_k = 1, .accumulator_chains = 1, .prefetch = false};

PlannedProjection packed_projection(const TensorDesc& tensor) {
  PlannedProjection plan;
  plan.name = tensor.role;
  plan.tensor = tensor;
  plan.padded_n = tensor.n;
  plan.route = Route::qpn8;
  plan.schedule = kGpuSchedule;
  return plan;
}

/// Products of 8 rows of FP16 numbers on a device, in F32.
Matrix<float> product_on(Backend& backend, const LinearSource& source, const Matrix<float>& x) {
  const std::unique_ptr<Linear> weight = backend.load_linear(source);
  const OwnedTensor in = backend.allocate(backend.activation_type(), x.rows(), x.cols());
  const OwnedTensor out = backend.allocate(DType::f32, x.rows(), weight->n());
  write_values(backend, in.tensor, x.values());
  backend.linear(*weight, in.tensor, out.tensor);
  Matrix<float> y(x.rows(), weight->n());
  backend.read(out.tensor, std::as_writable_bytes(y.values()));
  return y;
}

/// How far a GPU's products are from those of the CPU, which the same codes and scales give.
double gpu_error(Backend& gpu, const TensorDesc& tensor) {
  const RandomWeights weights(tensor.k, tensor.type);
  PlannedProjection plan = packed_projection(tensor);
  plan.tensor.n = std::min<std::int64_t>(tensor.n, 8 * kTileColumns);
  plan.padded_n = plan.tensor.n;
  Matrix<float> x = random_matrix(kManyRows, tensor.k);
  for (float& value : x.values()) value = to_float(to_half(value));
  const LinearSource source = weights.source(plan);
  const Matrix<float> found = product_on(gpu, source, x);
  const Matrix<float> expected = product_on(*make_cpu_backend({}), source, x);
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < found.values().size(); ++i) {
    const double difference = static_cast<double>(found.values()[i]) - expected.values()[i];
    error += difference * difference;
    norm += static_cast<double>(expected.values()[i]) * expected.values()[i];
  }
  return std::sqrt(error / norm);
}

/// What a GPU does with each shape, beside its probe.
TuneResult tune_gpu(const Hardware& hardware, const std::vector<TensorDesc>& tensors, const TuneOptions& options,
                    const std::function<void()>& tick) {
  EngineOptions engine;
  engine.threads = options.threads;
  const std::unique_ptr<Backend> gpu = make_backend(engine, hardware, Workspace::kDefaultBytes);
  const std::unique_ptr<MachineProbe> probe = make_probe(hardware, options.threads);
  TuneResult result;
  result.hardware = to_string(hardware);
  result.threads = cpu_threads(options.threads);
  result.rotation_bytes = options.rotation_bytes > 0 ? options.rotation_bytes : default_rotation_bytes(hardware);
  const OperatorOptions rows = {{1, kManyRows}, result.rotation_bytes, options.repeats};
  for (const TensorDesc& tensor : tensors) {
    const double error = gpu_error(*gpu, tensor);
    require_close(tensor, kGpuSchedule, error);
    std::vector<OperatorResult> measured = measure_operator(*gpu, *probe, packed_projection(tensor), false, rows, tick);
    result.shapes.push_back({.tensor = tensor,
                             .bytes = measured.front().bytes,
                             .trials = {{.schedule = kGpuSchedule,
                                         .relative_l2 = error,
                                         .one_row = std::move(measured[0].seconds),
                                         .eight_rows = std::move(measured[1].seconds)}},
                             .probe = std::move(measured[0].probe),
                             .chosen = 0});
  }
  return result;
}

std::int64_t samples_of(const TensorDesc& tensor, const Repeats& repeats) {
  const auto candidates = static_cast<std::int64_t>(2 * candidate_schedules(tensor.k).size() + 1);
  return candidates * (repeats.warmups + repeats.counted);
}

/// 1, 2, 4, ... and `most`.
std::vector<int> thread_counts(int most) {
  std::vector<int> counts;
  for (int threads = 1; threads < most; threads *= 2) counts.push_back(threads);
  counts.push_back(most);
  return counts;
}

class Tuner {
 public:
  Tuner(const Hardware& hardware, const TuneOptions& options, std::function<void()> tick)
      : options_(options),
        tick_(std::move(tick)),
        team_(cpu_threads(options.threads)),
        probe_(make_probe(hardware, options.threads)) {
    result_.hardware = to_string(hardware);
    result_.threads = team_.size();
    result_.rotation_bytes = options.rotation_bytes > 0 ? options.rotation_bytes : default_rotation_bytes(hardware);
  }

  void shape(const TensorDesc& tensor) {
    TunedShape shape;
    shape.tensor = tensor;
    shape.trials = checked_trials(tensor, team_);
    PackedRotation rotation(tensor.k, tensor.n, result_.rotation_bytes, team_);
    shape.bytes = rotation.bytes();
    Products products(rotation, result_.rotation_bytes, tensor, team_);

    std::vector<std::function<double()>> candidates = {
        [this] { return probe_->read_bytes_per_s(result_.rotation_bytes); }};
    for (const ScheduleTrial& trial : shape.trials) {
      for (const int rows : {1, kManyRows}) {
        candidates.emplace_back([&products, &trial, rows] { return products.sample(trial.schedule, rows); });
      }
    }
    std::vector<Samples> samples = measure_alternating(candidates, options_.repeats, tick_);
    shape.probe = std::move(samples.front());
    for (std::size_t i = 0; i < shape.trials.size(); ++i) {
      shape.trials[i].one_row = std::move(samples[2 * i + 1]);
      shape.trials[i].eight_rows = std::move(samples[2 * i + 2]);
    }
    shape.chosen = choose_trial(shape.trials);
    result_.shapes.push_back(std::move(shape));
  }

  void threads() {
    const TunedShape& widest = *std::max_element(result_.shapes.begin(), result_.shapes.end(),
                                                 [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    const TensorDesc& tensor = widest.tensor;
    const Schedule& schedule = widest.trials[widest.chosen].schedule;
    PackedRotation rotation(tensor.k, tensor.n, result_.rotation_bytes, team_);
    std::vector<std::unique_ptr<ThreadTeam>> teams;
    std::vector<std::unique_ptr<Products>> products;
    std::vector<std::function<double()>> candidates;
    for (const int threads : thread_counts(team_.size())) {
      teams.push_back(std::make_unique<ThreadTeam>(threads));
      products.push_back(std::make_unique<Products>(rotation, result_.rotation_bytes, tensor, *teams.back()));
      candidates.emplace_back([&schedule, product = products.back().get()] { return product->sample(schedule, 1); });
      result_.thread_trials.push_back({threads, {}});
    }
    std::vector<Samples> samples = measure_alternating(candidates, options_.repeats, tick_);
    for (std::size_t i = 0; i < samples.size(); ++i) result_.thread_trials[i].seconds = std::move(samples[i]);
  }

  TuneResult take() { return std::move(result_); }

 private:
  const TuneOptions& options_;
  std::function<void()> tick_;
  ThreadTeam team_;
  std::unique_ptr<MachineProbe> probe_;
  TuneResult result_;
};

}  // namespace

std::vector<Schedule> candidate_schedules(std::int64_t k) {
  std::vector<Schedule> schedules;
  // What the shipped contract says comes first where it divides k: choose_trial() keeps it unless another one gains.
  for (const int chains : {1, 2, 4}) {
    for (const bool prefetch : {true, false}) {
      for (const int split : {8, 4, 2, 1}) {
        const Schedule schedule = {.split_k = split, .accumulator_chains = chains, .prefetch = prefetch};
        if (schedule_refusal(schedule, k).empty()) schedules.push_back(schedule);
      }
    }
  }
  return schedules;
}

std::size_t choose_trial(const std::vector<ScheduleTrial>& trials) {
  constexpr double kGain = 0.98;
  const auto cost = [](const ScheduleTrial& trial) {
    return median(trial.one_row) + median(trial.eight_rows) / kManyRows;
  };
  const auto best =
      std::min_element(trials.begin(), trials.end(), [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
  return cost(*best) > kGain * cost(trials.front()) ? 0 : static_cast<std::size_t>(best - trials.begin());
}

TuneResult tune(const Hardware& hardware, const std::vector<TensorDesc>& tensors, const TuneOptions& options,
                const SampleObserver& on_sample) {
  if (hardware.kind == HardwareKind::cuda) {
    const auto total =
        static_cast<std::int64_t>(3 * tensors.size()) * (options.repeats.warmups + options.repeats.counted);
    std::int64_t done = 0;
    return tune_gpu(hardware, tensors, options, [&] {
      if (on_sample) on_sample(++done, total);
    });
  }
  std::int64_t total = 0;
  for (const TensorDesc& tensor : tensors) total += samples_of(tensor, options.repeats);
  const auto teams = static_cast<std::int64_t>(thread_counts(cpu_threads(options.threads)).size());
  total += teams * (options.repeats.warmups + options.repeats.counted);
  std::int64_t done = 0;
  Tuner tuner(hardware, options, [&] {
    if (on_sample) on_sample(++done, total);
  });
  for (const TensorDesc& tensor : tensors) tuner.shape(tensor);
  tuner.threads();
  return tuner.take();
}

}  // namespace qpn8
