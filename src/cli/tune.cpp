#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/model_config.hpp"
#include "cli/commands.hpp"
#include "cli/common_options.hpp"
#include "cli/model_folder.hpp"
#include "cli/number.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "engine/engine_loader.hpp"
#include "engine/route_planner.hpp"
#include "measure/operator_bench.hpp"
#include "measure/tune.hpp"
#include "model/architecture.hpp"
#include "qpn8/error.hpp"
#include "route/contract_file.hpp"

namespace qpn8::cli {
namespace {

struct TuneCommand {
  CommonOptions common;
  std::string model;
  std::filesystem::path out;
  std::string name;
  std::int64_t rotation_mb = 0;
  Repeats repeats;
  bool json = false;
};

Plan plan_of(const TuneCommand& command, const EngineOptions& options) {
  const ModelConfig config = load_model_config(command.model);
  const Checkpoint checkpoint(command.model);
  return plan_routes(options, chosen_hardware(options),
                     describe_projections(config, topology_of(options), &checkpoint));
}

std::vector<TensorDesc> admitted_tensors(const Plan& plan) {
  std::vector<TensorDesc> tensors;
  for (const PlannedProjection& projection : distinct_operators(plan)) {
    if (projection.route == Route::qpn8) tensors.push_back(projection.tensor);
  }
  if (tensors.empty()) {
    throw Error(Error::unsupported_shape,
                "qpn8 tune: no projection of the model is on QPN8 here, so there is nothing to tune; see 'qpn8 plan'");
  }
  return tensors;
}

/// The contract that admits most of the plan: what is tuned keeps its topology, weights and exclusions.
Contract base_of(const Plan& plan, const EngineOptions& options) {
  const auto admitted_by = [&](const Contract& contract) {
    return std::count_if(plan.projections().begin(), plan.projections().end(), [&](const PlannedProjection& p) {
      return p.route == Route::qpn8 && p.contract == contract.name;
    });
  };
  const std::vector<Contract> contracts = load_contracts(options.contracts);
  return *std::max_element(contracts.begin(), contracts.end(),
                           [&](const Contract& a, const Contract& b) { return admitted_by(a) < admitted_by(b); });
}

void tune_model(const TuneCommand& command) {
  check_range("--repeats", command.repeats.counted, 1, 1000);
  check_range("--rotation-mb", command.rotation_mb, 0, std::int64_t{1} << 20);
  const EngineOptions options = command.common.engine_options();
  const Plan plan = plan_of(command, options);
  const std::vector<TensorDesc> tensors = admitted_tensors(plan);
  Contract base = base_of(plan, options);
  const std::string name = command.name.empty() ? base.name + "-tuned" : command.name;
  // A name that a contract cannot have is found out before the minutes of measuring.
  Contract named = base;
  named.name = name;
  parse_contract(to_text(named), "--name " + name);

  select_kernels(plan.hardware());
  TuneOptions tuning;
  tuning.threads = options.threads;
  tuning.rotation_bytes = command.rotation_mb << 20;
  tuning.repeats = command.repeats;
  TuneResult result;
  {
    Progress progress("measuring schedules");
    result = tune(plan.hardware(), tensors, tuning,
                  [&progress](std::int64_t done, std::int64_t total) { progress.show(done, total); });
  }
  const std::string text = to_text(tuned_contract(result, base, name));
  parse_contract(text, command.out.string());
  write_file(command.out, text);
  write_output(command.json ? to_json(result).dump(2) + "\n" : to_table(result));
}

}  // namespace

void add_tune(CLI::App& program) {
  const auto command = std::make_shared<TuneCommand>();
  CLI::App& app = *program.add_subcommand("tune", "Measure schedules for a model's shapes and write a contract");
  app.add_option("--model", command->model, "a Hugging Face folder")
      ->required()
      ->check(model_folder())
      ->type_name("DIR");
  app.add_option("--out", command->out, "the contract's file, for --contract")->required()->type_name("FILE");
  app.add_option("--name", command->name, "the contract's name [that of the contract it starts from, and -tuned]")
      ->type_name("NAME");
  add_number(app, "--repeats", command->repeats.counted, "samples of each figure [7]");
  add_number(app, "--rotation-mb", command->rotation_mb,
             "MiB of weights that products rotate through [twice the last-level cache]");
  app.add_flag("--json", command->json, "print all that was measured as one JSON object instead of the table");
  command->common.add_to(app);
  app.callback([command] { tune_model(*command); });
}

}  // namespace qpn8::cli
