#include "measure/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "backend/cpu_backend.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/model_config.hpp"
#include "engine/engine_loader.hpp"
#include "engine/route_planner.hpp"
#include "measure/machine_probe.hpp"
#include "measure/model_under_test.hpp"
#include "model/architecture.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

// Steps a decode sample: some 100 ms of a model of a gigabyte.
constexpr int kSteps = 8;

/// One of the two ways to run a model.
struct Arm {
  Route route;
  EngineOptions options;
};

/// Counts samples over all parts of a run.
class Tally {
 public:
  explicit Tally(const SampleObserver& observer) : observer_(observer) {}
  void expect(std::int64_t samples) { total_ += samples; }
  void tick() {
    ++done_;
    if (observer_) observer_(std::min(done_, total_), total_);
  }

 private:
  const SampleObserver& observer_;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
};

std::vector<Arm> arms_of(const EngineOptions& engine, const Plan& plan) {
  std::vector<Arm> arms;
  if (plan.count(Route::qpn8) > 0) arms.push_back({Route::qpn8, engine});
  arms.push_back({Route::dense, engine});
  arms.back().options.qpn8 = "off";
  return arms;
}

std::int64_t rounds_of(const Repeats& repeats) { return repeats.warmups + repeats.counted; }

std::int64_t decode_room(const Repeats& repeats) { return kSteps * rounds_of(repeats); }

/// A run of parts that share the machine's probe.
class Run {
 public:
  Run(const EngineOptions& engine, const BenchOptions& options, const Plan& plan, const SampleObserver& observer)
      : engine_(engine), options_(options), plan_(plan), tally_(observer) {
    result_.hardware = to_string(plan.hardware());
    result_.threads = cpu_threads(engine.threads);
    result_.cache_bytes = cache_bytes(plan.hardware());
    result_.rotation_bytes =
        options.rotation_bytes > 0 ? options.rotation_bytes : default_rotation_bytes(plan.hardware());
    result_.plan = to_json(plan);
  }

  /// Before anything starts a thread.
  void load(const std::filesystem::path& folder) {
    const std::vector<Arm> arms = arms_of(engine_, plan_);
    tally_.expect(static_cast<std::int64_t>(arms.size()) * 3);
    for (const Arm& arm : arms) result_.load.push_back({arm.route, {}});
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < arms.size(); ++i) {
        const LoadResult load = plan_.hardware().kind == HardwareKind::cpu ? measure_load(folder, arms[i].options)
                                                                           : measure_load_here(folder, arms[i].options);
        if (round > 0) result_.load[i].loads.push_back(load);  // the first may have read the files from a disk
        tally_.tick();
      }
    }
  }

  void operators() {
    probe_ = make_probe(plan_.hardware(), engine_.threads);
    const std::unique_ptr<Backend> backend = make_backend(engine_, plan_);
    const OperatorOptions operator_options = {options_.rows, result_.rotation_bytes, options_.repeats};
    const std::vector<PlannedProjection> projections = distinct_operators(plan_);
    const auto packed = std::find_if(projections.begin(), projections.end(),
                                     [](const PlannedProjection& p) { return p.route == Route::qpn8; });
    for (const PlannedProjection& projection : projections) {
      tally_.expect(samples_of_operator(projection, true, operator_options));
    }
    if (packed != projections.end()) {
      OperatorOptions packed_rows = operator_options;
      std::erase_if(packed_rows.rows, [](std::int64_t m) { return m > kMaxPackedRows; });
      if (!packed_rows.rows.empty()) {
        const PlannedProjection wide = beyond_cache_operator(*packed, result_.rotation_bytes);
        tally_.expect(samples_of_operator(wide, false, packed_rows));
        measure(*backend, wide, false, packed_rows);
      }
    }
    for (const PlannedProjection& projection : projections) measure(*backend, projection, true, operator_options);
  }

  void models(const std::filesystem::path& folder, std::int64_t positions) {
    if (!probe_) probe_ = make_probe(plan_.hardware(), engine_.threads);
    const std::vector<std::int64_t> contexts = fitting_contexts(positions);
    const bool prefill = options_.prefill && prefill_fits(positions);
    const std::vector<Arm> arms = arms_of(engine_, plan_);
    std::vector<std::unique_ptr<ModelUnderTest>> models;
    models.reserve(arms.size());
    for (const Arm& arm : arms) {
      models.push_back(std::make_unique<ModelUnderTest>(folder, with_room(arm.options, contexts, prefill)));
    }
    const auto per_round = static_cast<std::int64_t>(2 * arms.size());
    tally_.expect(rounds_of(options_.repeats) * per_round * static_cast<std::int64_t>(contexts.size()));
    if (prefill) tally_.expect(rounds_of(options_.repeats) * static_cast<std::int64_t>(arms.size() + 1));
    for (const std::int64_t context : contexts) decode(arms, models, context);
    if (prefill) this->prefill(arms, models);
    if (options_.growth_model && !contexts.empty()) growth(arms.front(), *models.front(), contexts.front());
  }

  BenchResult take() { return std::move(result_); }

 private:
  void measure(Backend& backend, const PlannedProjection& projection, bool dense_too, const OperatorOptions& options) {
    for (OperatorResult& measured :
         measure_operator(backend, *probe_, projection, dense_too, options, [this] { tally_.tick(); })) {
      result_.operators.push_back(std::move(measured));
    }
  }

  std::vector<std::int64_t> fitting_contexts(std::int64_t positions) {
    std::vector<std::int64_t> fitting;
    if (!options_.decode) return fitting;
    for (const std::int64_t context : options_.contexts) {
      if (context + decode_room(options_.repeats) <= positions) {
        fitting.push_back(context);
      } else {
        result_.notes.push_back(
            fmt::format("decode at a context of {}: left out, {} positions are needed and there "
                        "are {}",
                        context, context + decode_room(options_.repeats), positions));
      }
    }
    return fitting;
  }

  bool prefill_fits(std::int64_t positions) {
    if (options_.prefill_tokens < positions) return true;
    result_.notes.push_back(
        fmt::format("prefill of {} tokens: left out, there are {} positions", options_.prefill_tokens, positions));
    return false;
  }

  /// No more room for keys and values than what is measured needs.
  EngineOptions with_room(EngineOptions options, const std::vector<std::int64_t>& contexts, bool prefill) const {
    std::int64_t needed = prefill ? options_.prefill_tokens + 1 : 1;
    for (const std::int64_t context : contexts) needed = std::max(needed, context + decode_room(options_.repeats));
    options.max_model_len = needed;
    return options;
  }

  /// Each model's steps beside a read of as many bytes, all in turn.
  std::vector<DecodeResult> decode_in_turn(std::span<ModelUnderTest* const> models, std::int64_t context) {
    std::vector<std::vector<double>> bytes(models.size());
    std::vector<std::function<double()>> candidates;
    auto sizes_of = bytes.begin();
    for (ModelUnderTest* const model : models) {
      model->prefill(context);
      candidates.emplace_back([this, size = model->bytes_per_step()] { return probe_->read_bytes_per_s(size); });
      candidates.emplace_back([model, &sizes = *sizes_of++] {
        const auto first = static_cast<double>(model->bytes_per_step());
        const double seconds = model->decode(kSteps);
        const auto after = static_cast<double>(model->bytes_per_step());
        sizes.push_back(first + (after - first) * (kSteps - 1) / (2 * kSteps));  // the steps' mean
        return seconds;
      });
    }
    const std::vector<Samples> samples = measure_alternating(candidates, options_.repeats, [this] { tally_.tick(); });
    std::vector<DecodeResult> results(models.size());
    for (std::size_t i = 0; i < models.size(); ++i) {
      results[i].context = context;
      results[i].probe = samples[2 * i];
      results[i].seconds = samples[2 * i + 1];
      results[i].bytes.assign(bytes[i].begin() + options_.repeats.warmups, bytes[i].end());
    }
    return results;
  }

  void decode(const std::vector<Arm>& arms, const std::vector<std::unique_ptr<ModelUnderTest>>& models,
              std::int64_t context) {
    std::vector<ModelUnderTest*> all;
    all.reserve(models.size());
    for (const auto& model : models) all.push_back(model.get());
    std::vector<DecodeResult> results = decode_in_turn(all, context);
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i].route = arms[i].route;
      result_.decode.push_back(std::move(results[i]));
    }
  }

  void prefill(const std::vector<Arm>& arms, const std::vector<std::unique_ptr<ModelUnderTest>>& models) {
    std::vector<std::function<double()>> candidates = {[this] { return probe_->flop_per_s(); }};
    for (const auto& model : models) {
      candidates.emplace_back([this, &model] { return model->prefill(options_.prefill_tokens); });
    }
    std::vector<Samples> samples = measure_alternating(candidates, options_.repeats, [this] { tally_.tick(); });
    for (std::size_t i = 0; i < arms.size(); ++i) {
      result_.prefill.push_back({.route = arms[i].route,
                                 .tokens = options_.prefill_tokens,
                                 .flop = models[i]->model().prefill_flop(options_.prefill_tokens),
                                 .seconds = std::move(samples[i + 1]),
                                 .peak = samples.front()});
    }
  }

  void growth(const Arm& arm, ModelUnderTest& large, std::int64_t context) {
    ModelUnderTest small(*options_.growth_model, with_room(arm.options, {context}, false));
    tally_.expect(rounds_of(options_.repeats) * 4);
    ModelUnderTest* both[] = {&small, &large};
    std::vector<DecodeResult> results = decode_in_turn(both, context);
    for (DecodeResult& result : results) result.route = arm.route;
    result_.growth = GrowthResult{std::move(results[0]), std::move(results[1])};
  }

  const EngineOptions& engine_;
  const BenchOptions& options_;
  const Plan& plan_;
  Tally tally_;
  std::unique_ptr<MachineProbe> probe_;
  BenchResult result_;
};

}  // namespace

Samples DecodeResult::bandwidth_fraction() const { return ratios(ratios(bytes, seconds), probe); }

Samples PrefillResult::flop_fraction() const { return ratios(rates(flop, seconds), peak); }

LoadResult RouteLoad::median() const {
  const auto of = [this](auto member) {
    std::vector<double> values;
    for (const LoadResult& load : loads) values.push_back(static_cast<double>(load.*member));
    return qpn8::median(values);
  };
  LoadResult result = loads.front();
  result.seconds = of(&LoadResult::seconds);
  result.weights_seconds = of(&LoadResult::weights_seconds);
  result.peak_rss_bytes = static_cast<std::int64_t>(of(&LoadResult::peak_rss_bytes));
  return result;
}

BenchResult bench_model(const std::filesystem::path& folder, const EngineOptions& engine, const BenchOptions& options,
                        const SampleObserver& on_sample) {
  const ModelConfig config = load_model_config(folder);
  const std::int64_t positions = context_length(config, engine.max_model_len);
  const Checkpoint checkpoint(folder);
  const std::vector<Projection> projections = describe_projections(config, topology_of(engine), &checkpoint);
  const Plan plan = plan_routes(engine, chosen_hardware(engine), projections);
  Run run(engine, options, plan, on_sample);
  if (options.load) run.load(folder);
  if (options.operators) run.operators();
  if (options.decode || options.prefill) run.models(folder, positions);
  return run.take();
}

BenchResult bench_shapes(const std::vector<ProjectionDesc>& shapes, const EngineOptions& engine,
                         const BenchOptions& options, const SampleObserver& on_sample) {
  std::vector<Projection> projections;
  projections.reserve(shapes.size());
  for (const ProjectionDesc& shape : shapes) projections.push_back({.desc = shape, .parts = {}});
  const Plan plan = plan_routes(engine, chosen_hardware(engine), projections);
  Run run(engine, options, plan, on_sample);
  run.operators();
  return run.take();
}

}  // namespace qpn8
