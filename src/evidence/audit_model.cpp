#include "evidence/audit_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/front_end.hpp"
#include "engine/route_planner.hpp"
#include "engine/sequence_runner.hpp"
#include "model/weights.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {

const char* const kAuditText =
    "A baker sells 24 rolls in the morning and 18 in the afternoon. Each roll costs 3 coins, and every fifth customer "
    "pays half. How many coins does the baker take in a day, if 7 customers come before noon and 8 after it? First "
    "count the rolls, then the coins, and put the result at the end. The mill beside the river has turned since the "
    "spring of 1908; its wheel was mended twice, in a winter of floods and again when the weir gave way.";

namespace {

constexpr std::int64_t kMostTokens = 128;

/// Ids far apart from each other: neighbouring ones often have similar embeddings.
std::vector<TokenId> spread_ids(std::int64_t count, std::int64_t vocabulary) {
  constexpr std::int64_t kStride = 7919;
  std::vector<TokenId> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<TokenId>((1 + i * kStride) % vocabulary));
  return ids;
}

std::vector<TokenId> prompt_ids(const LoadedModel& loaded, const std::string& text) {
  const std::int64_t most = std::min(kMostTokens, loaded.front.context_length());
  if (!loaded.front.has_tokenizer()) return spread_ids(most, loaded.model->vocab_size());
  std::vector<TokenId> ids = loaded.front.encode_prompt(text);
  if (ids.empty()) throw Error(Error::bad_argument, "--text: no tokens; expected a text to run through the model");
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(most)));
  for (const TokenId id : ids) {
    if (id < 0 || id >= loaded.model->vocab_size()) {
      throw Error(Error::bad_file, "tokenizer.json: id " + std::to_string(id) + " is outside the vocabulary of " +
                                       std::to_string(loaded.model->vocab_size()));
    }
  }
  return ids;
}

void require_qpn8(const Plan& plan) {
  if (plan.count(Route::qpn8) > 0) return;
  const std::string reason = plan.projections().empty() ? "it has no projections" : plan.projections().front().reason;
  throw Error(Error::missing_capability,
              "audit: no projection runs on QPN8 (the first: " + reason + "); see 'qpn8 plan' for the others");
}

std::vector<AuditedUnit> units_of(const Plan& plan) {
  std::vector<AuditedUnit> units;
  for (const PlannedProjection& projection : plan.projections()) {
    for (std::int64_t group = 0; group < projection.tensor.groups; ++group) {
      units.push_back({.planned = projection, .projection = projection.name, .group = group});
      units.back().planned.tensor.groups = 1;
      if (projection.tensor.groups > 1) units.back().planned.name += fmt::format("[{}]", group);
    }
  }
  return units;
}

/// Inputs of projections of several groups, cut into those of each group.
void cut_groups(const std::vector<AuditedUnit>& units, RecordedInputs& captured) {
  for (const AuditedUnit& unit : units) {
    const auto whole = captured.find(unit.projection);
    if (unit.planned.name == unit.projection || whole == captured.end()) continue;
    const std::int64_t k = unit.planned.tensor.k;
    const MatrixView<const float> columns = std::as_const(whole->second).view().col_range(unit.group * k, k);
    Matrix<float> cut(columns.rows, k);
    for (std::int64_t t = 0; t < columns.rows; ++t) {
      std::copy(columns.row(t).begin(), columns.row(t).end(), cut.view().row(t).begin());
    }
    captured.emplace(unit.planned.name, std::move(cut));
  }
}

}  // namespace

LinearSource AuditedModel::source(const AuditedUnit& unit) const {
  const ModelSource model = {.config = &config,
                             .checkpoint = &checkpoint,
                             .plan = &plan,
                             .projections = projections,
                             .backend = backend.get()};
  LinearSource source = WeightLoader(model).linear_source(unit.projection);
  source.plan = &unit.planned;
  source.parts = rows_of(source.parts, unit.group * unit.planned.tensor.n, unit.planned.tensor.n);
  source.bias.clear();
  return source;
}

AuditedModel open_audited_model(const std::filesystem::path& folder, const EngineOptions& options,
                                const std::string& text, const LoadObserver& observer) {
  LoadObserver checked = observer;
  checked.planned = [&](const Plan& plan) {
    require_qpn8(plan);  // before the weights are loaded
    if (observer.planned) observer.planned(plan);
  };
  ActivationRecorder* recorder = nullptr;
  LoadedModel loaded = load_model(FrontEnd(folder, options), checked, [&](std::unique_ptr<Backend> device) {
    auto recording = std::make_unique<ActivationRecorder>(std::move(device), kMostTokens);
    recorder = recording.get();
    return recording;
  });
  const std::vector<TokenId> ids = prompt_ids(loaded, text);
  std::vector<float> logits(ids.size() * static_cast<std::size_t>(loaded.model->vocab_size()));
  SequenceRunner runner(*loaded.backend, *loaded.model, *loaded.cache, loaded.max_rows);
  runner.reset();
  runner.extend(ids, loaded.max_rows, logits);
  RecordedInputs captured = recorder->stop();
  std::vector<AuditedUnit> units = units_of(loaded.plan);
  cut_groups(units, captured);

  const bool has_tokenizer = loaded.front.has_tokenizer();
  ModelConfig config = loaded.front.config();
  std::vector<Projection> projections = describe_projections(config, topology_of(options), &loaded.checkpoint);
  return {.config = std::move(config),
          .checkpoint = std::move(loaded.checkpoint),
          .plan = std::move(loaded.plan),
          .projections = std::move(projections),
          .backend = std::move(loaded.backend),
          .captured = std::move(captured),
          .captured_tokens = static_cast<std::int64_t>(ids.size()),
          .units = std::move(units),
          .has_tokenizer = has_tokenizer};
}

}  // namespace qpn8
