#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands.hpp"
#include "cli/common_options.hpp"
#include "cli/model_folder.hpp"
#include "cli/number.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "engine/engine_loader.hpp"
#include "evidence/audit.hpp"
#include "evidence/audit_report.hpp"
#include "qpn8/error.hpp"
#include "route/contract_file.hpp"

namespace qpn8::cli {
namespace {

constexpr std::int64_t kMostRows = 512;

struct AuditCommand {
  CommonOptions common;
  std::filesystem::path model;
  std::optional<std::filesystem::path> out;
  std::string text = kAuditText;
  AuditOptions options;
  bool gate = false;
  bool json = false;
};

GateResult run_gate_on(const AuditedModel& model, const AuditCommand& command, const EngineOptions& options,
                       std::span<const Contract> contracts, ThreadTeam& team) {
  std::vector<LinearSource> sources;
  std::vector<PlannedProjection> planned;
  planned.reserve(model.units.size());
  for (const AuditedUnit& unit : model.units) planned.push_back(unit.planned);
  for (const std::size_t i : distinct_shapes(planned)) sources.push_back(model.source(model.units[i]));
  return run_gate(
      {.backend = *model.backend,
       .with_workspace = [&](std::size_t bytes) { return make_backend(options, model.plan.hardware(), bytes); },
       .sources = std::move(sources),
       .contracts = contracts,
       .team = team,
       .least_outputs = command.options.least_outputs});
}

void check_outputs(std::int64_t outputs) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (outputs >= 1 && outputs <= kMost) return;
  throw Error(Error::bad_argument, fmt::format("--outputs {}: expected 1 to {}", outputs, kMost));
}

void audit(const AuditCommand& command) {
  check_outputs(command.options.least_outputs);
  const EngineOptions options = command.common.engine_options();
  const std::vector<Contract> contracts = load_contracts(options.contracts);
  const AuditedModel model = open_audited_model(command.model, options, command.text, stderr_observer());
  ThreadTeam team(options.threads > 0 ? options.threads
                                      : std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  AuditResult result;
  {
    Progress progress("auditing");
    audit_projections(model, contracts, command.options, team, result,
                      [&](std::int64_t done, std::int64_t total) { progress.show(done, total); });
  }
  result.run = {{"model", command.model.string()},
                {"hardware", to_string(model.plan.hardware())},
                {"rows", command.options.rows},
                {"least_outputs", command.options.least_outputs},
                {"seed", command.options.seed},
                {"captured_tokens", model.captured_tokens},
                {"captured_from", model.has_tokenizer ? command.text : "ids spread over the vocabulary"},
                {"options", options.to_json()}};
  if (command.gate) result.gate = run_gate_on(model, command, options, contracts, team);
  if (command.out) write_audit(*command.out, result);
  write_output(command.json ? to_json(result).dump(2) + "\n" : to_text(result));
  require_passed(result);
}

}  // namespace

void add_audit(CLI::App& program) {
  const auto command = std::make_shared<AuditCommand>();
  CLI::App& app = *program.add_subcommand("audit", "Compare every projection with three references");
  app.add_option("--model", command->model, "a Hugging Face folder")
      ->required()
      ->check(model_folder())
      ->type_name("DIR");
  app.add_option_function<std::string>(
         "--rows",
         [command = command.get()](const std::string& list) {
           command->options.rows = parse_distinct("--rows", list, 1, kMostRows);
         },
         "tokens a step, the M of the products [1,9]")
      ->type_name("1,9");
  app.add_option("--text", command->text, "what is run through the model to capture activations [a built-in text]")
      ->type_name("TEXT");
  add_number(app, "--outputs", command->options.least_outputs,
             "least outputs that a row of the table is measured over [16384]");
  add_number(app, "--seed", command->options.seed, "of the drawn activations [1]");
  app.add_flag("--gate", command->gate,
               "also try replays, groups, excluded roles and the workspace, and fail if one does not hold");
  app.add_option("--out", command->out, "the folder for audit.json and audit.md")->type_name("DIR");
  app.add_flag("--json", command->json, "print one JSON object instead of the tables");
  command->common.add_to(app);
  app.callback([command] { audit(*command); });
}

}  // namespace qpn8::cli
