#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/model_config.hpp"
#include "checkpoint/presets.hpp"
#include "cli/commands.hpp"
#include "cli/common_options.hpp"
#include "cli/model_folder.hpp"
#include "cli/output.hpp"
#include "engine/route_planner.hpp"
#include "model/architecture.hpp"
#include "qpn8/contract.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cli {
namespace {

struct PlanCommand {
  CommonOptions common;
  std::optional<std::string> model;
  std::optional<std::string> like;
  std::optional<std::string> hardware;
  bool json = false;
};

std::vector<Projection> projections_of(const PlanCommand& command, const Topology& topology) {
  if (command.like) return describe_projections(preset_config(*command.like), topology, nullptr);
  const ModelConfig config = load_model_config(*command.model);
  const Checkpoint checkpoint(*command.model);
  return describe_projections(config, topology, &checkpoint);
}

Hardware parse_hardware_flag(const std::string& name) {
  try {
    return parse_hardware(name);
  } catch (const Error& error) {
    throw Error(Error::bad_argument, std::string("--hardware: ") + error.what());
  }
}

/// The hardware of --hardware, or this machine's; the engine's options must not ask for another.
Hardware hardware_for(const PlanCommand& command, const EngineOptions& options) {
  if (!command.hardware) return chosen_hardware(options);
  Hardware hardware = parse_hardware_flag(*command.hardware);
  const auto refuse = [&](const char* option, const std::string& value) {
    throw Error(Error::bad_argument,
                fmt::format("--hardware {}: {} says {}; give one of the two", *command.hardware, option, value));
  };
  const bool is_cpu = hardware.kind == HardwareKind::cpu;
  if (options.device != "auto" && (options.device == "cpu") != is_cpu) refuse("device", options.device);
  if (!options.cpu_isa.empty() && !(is_cpu && hardware.isa == options.cpu_isa)) {
    refuse("the engine argument cpu_isa", options.cpu_isa);
  }
  return hardware;
}

void show_plan(const PlanCommand& command) {
  if (!command.model && !command.like) {
    throw Error(Error::bad_argument, "qpn8 plan: no model is given; expected --model DIR or --like NAME");
  }
  const EngineOptions options = command.common.engine_options();
  const Hardware hardware = hardware_for(command, options);
  const Plan plan = plan_routes(options, hardware, projections_of(command, topology_of(options)));
  write_output(command.json ? to_json(plan).dump(2) + "\n" : to_table(plan));
}

}  // namespace

void add_plan(CLI::App& program) {
  const auto command = std::make_shared<PlanCommand>();
  CLI::App& app = *program.add_subcommand("plan", "Show which projection would run where, and why");
  CLI::Option* model =
      app.add_option("--model", command->model, "a Hugging Face folder")->check(model_folder())->type_name("DIR");
  app.add_option("--like", command->like, "a published model's shapes; needs no weights")
      ->type_name("NAME")
      ->excludes(model);
  app.add_option("--hardware", command->hardware,
                 "the machine to plan for instead of this one, which it need not be: cpu-avx2, sm70, ...")
      ->type_name("NAME");
  app.add_flag("--json", command->json, "print one JSON object instead of the table");
  command->common.add_to(app);
  app.callback([command] { show_plan(*command); });
}

}  // namespace qpn8::cli
