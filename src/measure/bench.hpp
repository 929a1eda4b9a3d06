#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_options.hpp"
#include "measure/load_measurement.hpp"
#include "measure/operator_bench.hpp"
#include "measure/samples.hpp"
#include "route/plan.hpp"

namespace qpn8 {

/// Decode steps of one sequence on one route.
struct DecodeResult {
  Route route = Route::dense;
  std::int64_t context = 0;  ///< tokens of the sequence before the first step
  Samples seconds;           ///< a token
  Samples bytes;             ///< that a step reads
  Samples probe;             ///< bytes a second of a plain read of as many bytes, in the same rounds

  Samples bandwidth_fraction() const;
};

/// One prompt on one route, from an empty cache to its first token.
struct PrefillResult {
  Route route = Route::dense;
  std::int64_t tokens = 0;
  double flop = 0;  ///< operations that it needs
  Samples seconds;
  Samples peak;  ///< operations a second of the multiply-add probe, in the same rounds

  Samples flop_fraction() const;
};

/// Loads of one model on one route.
struct RouteLoad {
  Route route = Route::dense;
  std::vector<LoadResult> loads;

  LoadResult median() const;  ///< each figure's own median
};

/// Decode of two models on the same route: what a step costs beside what it reads.
struct GrowthResult {
  DecodeResult small;
  DecodeResult large;
};

struct BenchResult {
  std::string hardware;
  int threads = 0;
  std::int64_t cache_bytes = 0;     ///< the last-level cache
  std::int64_t rotation_bytes = 0;  ///< of weights that an operator's calls rotate through
  std::vector<OperatorResult> operators;
  std::vector<DecodeResult> decode;
  std::vector<PrefillResult> prefill;
  std::vector<RouteLoad> load;
  std::optional<GrowthResult> growth;
  nlohmann::ordered_json plan;     ///< of the operators' projections
  std::vector<std::string> notes;  ///< what was left out, and why
};

/// What to measure.
struct BenchOptions {
  bool operators = true;
  bool decode = true;
  bool prefill = true;
  bool load = true;
  std::vector<std::int64_t> rows = {1, 2, 4, 8, 9, 64};
  std::vector<std::int64_t> contexts = {128, 4096};
  std::int64_t prefill_tokens = 512;
  std::int64_t rotation_bytes = 0;                    ///< 0: default_rotation_bytes() of the hardware
  std::optional<std::filesystem::path> growth_model;  ///< a smaller model for GrowthResult
  Repeats repeats;
};

/// Measures a model on QPN8 (as `engine` and its plan say) and on the dense route. The process must have one thread
/// when it measures loads. Contexts and prompts that the model has no room for are left out with a note; everything
/// else that cannot be done is an Error, as Engine documents them.
BenchResult bench_model(const std::filesystem::path& folder, const EngineOptions& engine, const BenchOptions& options,
                        const SampleObserver& on_sample = nullptr);

/// Measures the operators of these projections alone.
BenchResult bench_shapes(const std::vector<ProjectionDesc>& shapes, const EngineOptions& engine,
                         const BenchOptions& options, const SampleObserver& on_sample = nullptr);

}  // namespace qpn8
