#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/common_options.hpp"
#include "cli/interrupt.hpp"
#include "cli/number.hpp"
#include "cli/output.hpp"
#include "cli/tally_line.hpp"
#include "engine/engine.hpp"
#include "evidence/ab_folder.hpp"
#include "evidence/ab_runner.hpp"
#include "evidence/dataset.hpp"
#include "evidence/endpoint_arm.hpp"
#include "evidence/engine_arm.hpp"
#include "evidence/output_metrics.hpp"
#include "evidence/report_text.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cli {
namespace {

using Json = nlohmann::ordered_json;

struct AbCommand {
  CommonOptions common;
  std::filesystem::path model;
  std::filesystem::path dataset;
  std::filesystem::path out;
  std::vector<std::string> args_a;
  std::vector<std::string> args_b;
  std::vector<std::uint64_t> seeds = {0};
  ItemSelection selection;
  std::string instruction = kBoxedInstruction;
  GenerationSettings settings;
  double margin_points = 2.0;
  double rate_bound_points = 2.0;
  bool resume = false;
  bool overwrite = false;

  VerdictLimits limits() const { return {margin_points / 100, rate_bound_points / 100}; }
};

struct Arms {
  std::unique_ptr<Arm> a;
  std::unique_ptr<Arm> b;
};

std::vector<std::uint64_t> parse_seeds(const std::string& list) {
  std::vector<std::uint64_t> seeds;
  std::istringstream stream(list);
  for (std::string seed; std::getline(stream, seed, ',');) {
    seeds.push_back(parse_number<std::uint64_t>("--seeds", seed));
    if (std::count(seeds.begin(), seeds.end(), seeds.back()) > 1) {
      throw Error(Error::bad_argument, fmt::format("--seeds {}: {} is there twice", list, seed));
    }
  }
  if (seeds.empty()) throw Error(Error::bad_argument, "--seeds: is empty; expected 1,2,3");
  return seeds;
}

void check_points(const char* flag, double points) {
  if (points >= 0 && points <= 100) return;
  throw Error(Error::bad_argument, fmt::format("{} {}: expected 0 to 100 points", flag, points));
}

/// Makes the arms; engines with equal options are one.
class ArmMaker {
 public:
  explicit ArmMaker(const AbCommand& command) : command_(&command) {}

  std::unique_ptr<Arm> make(const std::vector<std::string>& own_args) {
    const Json own = parse_engine_args(own_args);
    if (EndpointOptions::is_endpoint(own)) {
      return std::make_unique<EndpointArm>(EndpointOptions::parse(own), command_->settings);
    }
    if (command_->model.empty()) {
      throw Error(Error::bad_argument, "--model is required: an arm without endpoint= is an engine");
    }
    EngineOptions options;
    Json args = command_->common.engine_args();
    args.update(own);  // an arm's own arguments win over those of both
    options.apply(args);
    return std::make_unique<EngineArm>(engine(options), command_->model, command_->settings);
  }

 private:
  std::shared_ptr<Engine> engine(const EngineOptions& options) {
    const Json asked = options.to_json();  // what the engine makes of "auto" does not count
    if (!last_ || last_asked_ != asked) {
      last_ = std::make_shared<Engine>(command_->model, options, stderr_observer());
      last_asked_ = asked;
    }
    return last_;
  }

  const AbCommand* command_;
  std::shared_ptr<Engine> last_;
  Json last_asked_;
};

/// The candidate is loaded and checked first: it is the one that may lack what the comparison is about.
Arms make_arms(const AbCommand& command) {
  ArmMaker maker(command);
  Arms arms;
  arms.b = maker.make(command.args_b);
  require_qpn8(*arms.b);
  arms.a = maker.make(command.args_a);
  return arms;
}

std::string file_hash(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return sha256_hex(text.str());
}

/// All that decides outputs, results or the verdict.
Json describe_run(const AbCommand& command, const Arms& arms, std::size_t items) {
  const GenerationSettings& settings = command.settings;
  const ItemSelection& selection = command.selection;
  return {{"model", command.model.string()},
          {"dataset", command.dataset.string()},
          {"dataset_sha256", file_hash(command.dataset)},
          {"items", items},
          {"start", selection.start},
          {"order", selection.order_text()},
          {"instruction", command.instruction},
          {"seeds", command.seeds},
          {"max_tokens", settings.max_tokens},
          {"temperature", settings.temperature},
          {"top_p", settings.top_p},
          {"top_k", settings.top_k},
          {"ignore_eos", settings.ignore_eos},
          {"margin_points", command.margin_points},
          {"rate_bound_points", command.rate_bound_points},
          {"a", arms.a->config()},
          {"b", arms.b->config()},
          {"plan", arms.b->plan().value_or(nullptr)}};
}

/// Runs the items that are not in the log; a signal ends the process after the output in flight.
void run_items(const AbRun& run, const Arms& arms, ItemLog& log) {
  InterruptGuard guard;
  AbEnd end = AbEnd::finished;
  {
    TallyLine line;
    end = run_ab(run, *arms.a, *arms.b, log,
                 {.interrupted = [&] { return guard.signal() != 0; },
                  .progress = [&](const AbTally& tally) { line.show(tally); }});
  }
  if (end == AbEnd::finished) return;
  spdlog::warn("qpn8: interrupted; the same command with --resume goes on after the {} items that are done",
               log.items().size());
  guard.raise_again();
}

void compare(AbCommand& command) {
  check_points("--margin", command.margin_points);
  check_points("--rate-bound", command.rate_bound_points);
  if (command.settings.max_tokens < 1) {
    throw Error(Error::bad_argument, fmt::format("--max-tokens {}: expected at least 1", command.settings.max_tokens));
  }
  AbRun run{select_items(load_dataset(command.dataset), command.selection), command.seeds};
  append_instruction(run.items, command.instruction);
  const Arms arms = make_arms(command);

  AbResult result;
  result.run = describe_run(command, arms, run.items.size());
  result.config_a = arms.a->config();
  result.config_b = arms.b->config();
  result.plan = arms.b->plan().value_or(nullptr);
  result.limits = command.limits();
  const AbFolder folder(command.out, result.run,
                        command.resume      ? AbFolder::Start::resume
                        : command.overwrite ? AbFolder::Start::overwrite
                                            : AbFolder::Start::anew);
  ItemLog log(folder.items_file(), folder.resumes());
  run_items(run, arms, log);

  result.items = log.items();
  result.summary = summarise(result.items);
  result.verdict = judge(result.summary, result.limits);
  folder.write(result);
  write_output(to_text(result));
  if (result.verdict.quality == Quality::inferior) {
    throw Error(Error::check_failed,
                fmt::format("{}: the verdict is inferior: {}", command.out.string(), result.verdict.reasons.front()));
  }
}

void add_item_flags(CLI::App& app, AbCommand& command) {
  app.add_option("--dataset", command.dataset, R"(JSON lines with "question" and "answer", or with "turns")")
      ->required()
      ->type_name("FILE");
  app.add_option("--instruction", command.instruction,
                 "what each question ends with; empty for nothing [asks for step by step reasoning and \\boxed{}]")
      ->type_name("TEXT");
  add_number(app, "--start", command.selection.start, "items to leave out at the front [0]");
  app.add_option_function<std::string>(
         "--limit",
         [&command](const std::string& text) { command.selection.limit = parse_number<std::int64_t>("--limit", text); },
         "most items [all]")
      ->type_name("INTEGER");
  app.add_option_function<std::string>(
         "--order",
         [&command](const std::string& text) { command.selection.shuffle_seed = ItemSelection::parse_order(text); },
         "sequential or shuffle:SEED, before --start and --limit [sequential]")
      ->type_name("ORDER");
  app.add_option_function<std::string>(
         "--seeds", [&command](const std::string& text) { command.seeds = parse_seeds(text); },
         "runs every item once a seed; a request's seed is this plus the item's index [0]")
      ->type_name("1,2,3");
}

void add_generation_flags(CLI::App& app, GenerationSettings& settings) {
  add_number(app, "--max-tokens", settings.max_tokens, "most tokens of an output [256]");
  add_number(app, "--temperature", settings.temperature, "0 takes the likeliest token each time [0]");
  add_number(app, "--top-p", settings.top_p, "sample from the likeliest tokens with this probability together [1]");
  add_number(app, "--top-k", settings.top_k, "sample from so many of the likeliest tokens; 0 is all [0]");
  app.add_flag("--ignore-eos", settings.ignore_eos, "go on after an end-of-sequence token");
}

void add_verdict_flags(CLI::App& app, AbCommand& command) {
  add_number(app, "--margin", command.margin_points, "points of accuracy that B may lose at most [2]");
  add_number(app, "--rate-bound", command.rate_bound_points,
             "points by which B may have more invalid, truncated or repetitive outputs [2]");
}

}  // namespace

void add_ab(CLI::App& program) {
  const auto command = std::make_shared<AbCommand>();
  CLI::App& app = *program.add_subcommand("ab", "Compare two arms on the same items, interleaved");
  app.add_option("--model", command->model, "a Hugging Face folder, for arms that are engines")->type_name("DIR");
  add_item_flags(app, *command);
  app.add_option("--a", command->args_a,
                 "an engine argument of A alone, or endpoint=URL model=NAME of a server; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--b", command->args_b, "the same for B, the candidate")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_generation_flags(app, command->settings);
  add_verdict_flags(app, *command);
  app.add_option("--out", command->out, "the folder for items.jsonl, result.json and the reports")
      ->required()
      ->type_name("DIR");
  CLI::Option* resume = app.add_flag("--resume", command->resume, "go on with the unfinished run in --out");
  app.add_flag("--overwrite", command->overwrite, "drop an unfinished run in --out")->excludes(resume);
  command->common.add_to(app);
  app.callback([command] { compare(*command); });
}

}  // namespace qpn8::cli
