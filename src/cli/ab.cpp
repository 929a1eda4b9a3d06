#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/ab_arms.hpp"
#include "cli/commands.hpp"
#include "cli/common_options.hpp"
#include "cli/generation_flags.hpp"
#include "cli/interrupt.hpp"
#include "cli/model_folder.hpp"
#include "cli/not_empty.hpp"
#include "cli/number.hpp"
#include "cli/output.hpp"
#include "cli/tally_line.hpp"
#include "evidence/ab_folder.hpp"
#include "evidence/ab_runner.hpp"
#include "evidence/dataset.hpp"
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
  GenerationRequest request;  ///< but for prompt and seed
  double margin_points = 2.0;
  double rate_bound_points = 2.0;
  bool resume = false;
  bool overwrite = false;

  VerdictLimits limits() const { return {margin_points / 100, rate_bound_points / 100}; }
};

std::vector<std::uint64_t> parse_seeds(const std::string& list) {
  std::vector<std::uint64_t> seeds = parse_numbers<std::uint64_t>("--seeds", list);
  for (const std::uint64_t seed : seeds) {
    if (std::count(seeds.begin(), seeds.end(), seed) == 1) continue;
    throw Error(Error::bad_argument, fmt::format("--seeds {}: {} is there twice; expected each once", list, seed));
  }
  return seeds;
}

void check_points(const char* flag, double points) {
  if (points >= 0 && points <= 100) return;
  throw Error(Error::bad_argument, fmt::format("{} {}: expected 0 to 100 points", flag, points));
}

/// A data set, and the hash of the bytes it was parsed from.
struct HashedDataset {
  std::vector<DatasetItem> items;
  std::string sha256;
};

HashedDataset read_hashed_dataset(const std::filesystem::path& file) {
  const std::string text = read_dataset_text(file);
  std::istringstream stream(text);
  return {read_dataset(stream, file.string()), sha256_hex(text)};
}

/// All that decides outputs, results or the verdict, but the plan.
Json describe_run(const AbCommand& command, const ArmLoader& arms, const std::string& dataset_sha256,
                  std::size_t items) {
  const GenerationRequest& request = command.request;
  const SamplingOptions& sampling = request.sampling;
  const ItemSelection& selection = command.selection;
  return {{"model", command.model.string()},
          {"dataset", command.dataset.string()},
          {"dataset_sha256", dataset_sha256},
          {"items", items},
          {"start", selection.start},
          {"order", selection.order_text()},
          {"instruction", command.instruction},
          {"seeds", command.seeds},
          {"max_tokens", request.max_tokens},
          {"temperature", sampling.temperature},
          {"top_p", sampling.top_p},
          {"top_k", sampling.top_k},
          {"min_p", sampling.min_p},
          {"repetition_penalty", sampling.repetition_penalty},
          {"stop", request.stop},
          {"ignore_eos", request.ignore_eos},
          {"margin_points", command.margin_points},
          {"rate_bound_points", command.rate_bound_points},
          {"a", arms.config_a()},
          {"b", arms.config_b()}};
}

void check_flags(const AbCommand& command) {
  if (command.args_a.empty() && command.args_b.empty()) {
    throw Error(Error::bad_argument,
                "--a, --b: neither is given; expected what the arms differ in, such as --a qpn8=off --b qpn8=require");
  }
  check_points("--margin", command.margin_points);
  check_points("--rate-bound", command.rate_bound_points);
  command.request.validate({.prompt = "prompt", .flags = true});
}

AbFolder::Start start_of(const AbCommand& command) {
  if (command.resume) return AbFolder::Start::resume;
  return command.overwrite ? AbFolder::Start::overwrite : AbFolder::Start::anew;
}

/// Runs the items that are not in the log; a signal ends the process after the output in flight. The folder changes
/// when the first of them is done.
void run_items(const AbRun& run, const Arms& arms, ItemLog& log, const std::function<void()>& begin) {
  InterruptGuard guard;
  AbEnd end = AbEnd::finished;
  {
    TallyLine line;
    end = run_ab(run, *arms.a, *arms.b, log,
                 {.interrupted = [&] { return guard.signal() != 0; },
                  .first_item_done = begin,
                  .progress = [&](const AbTally& tally) { line.show(tally); }});
  }
  if (end == AbEnd::finished) return;
  if (log.items().empty()) {
    spdlog::warn("qpn8: interrupted before an item was done; nothing was changed");
  } else {
    spdlog::warn("qpn8: interrupted; the same command with --resume goes on after the {} items that are done",
                 log.items().size());
  }
  guard.raise_again();
}

/// The items as the schedule has them: a log that lacked one in its middle has it at the end.
std::vector<ItemRecords> in_schedule_order(std::vector<ItemRecords> items) {
  std::stable_sort(items.begin(), items.end(), [](const ItemRecords& left, const ItemRecords& right) {
    return left.front().order / kArmNames.size() < right.front().order / kArmNames.size();
  });
  return items;
}

void compare(const AbCommand& command) {
  check_flags(command);
  HashedDataset dataset = read_hashed_dataset(command.dataset);
  AbRun run{select_items(std::move(dataset.items), command.selection), command.seeds};
  append_instruction(run.items, command.instruction);
  ArmLoader loader({command.common, command.model, command.args_a, command.args_b}, command.request);
  std::vector<std::string> notes = loader.require_items(run.items);

  AbResult result;
  result.run = describe_run(command, loader, dataset.sha256, run.items.size());
  result.config_a = loader.config_a();
  result.config_b = loader.config_b();
  result.limits = command.limits();
  const AbFolder folder(command.out, start_of(command));
  folder.require_same(result.run);
  ItemLog log(folder.items_file(), folder.resumes());
  require_items_of(run, log);

  const Arms arms = loader.load();
  result.plan = arms.b->plan().value_or(nullptr);
  result.run["plan"] = result.plan;
  folder.require_same(result.run);
  if (are_alike(arms)) notes.emplace_back("both arms have the same configuration: A and B differ by noise alone");
  for (const std::string& note : notes) spdlog::warn("qpn8: {}", note);
  run_items(run, arms, log, [&] { folder.begin(result.run, log); });

  result.items = in_schedule_order(log.items());
  result.summary = summarise(result.items);
  result.verdict = judge(result.summary, result.limits);
  result.verdict.reasons.insert(result.verdict.reasons.end(), notes.begin(), notes.end());
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
      ->check(not_empty("a file"))
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

void add_verdict_flags(CLI::App& app, AbCommand& command) {
  add_number(app, "--margin", command.margin_points, "points of accuracy that B may lose at most [2]");
  add_number(app, "--rate-bound", command.rate_bound_points,
             "points by which B may have more invalid, truncated or repetitive outputs [2]");
}

}  // namespace

void add_ab(CLI::App& program) {
  const auto command = std::make_shared<AbCommand>();
  CLI::App& app = *program.add_subcommand("ab", "Compare two arms on the same items, interleaved");
  app.add_option("--model", command->model, "a Hugging Face folder, for arms that are engines")
      ->check(model_folder())
      ->type_name("DIR");
  add_item_flags(app, *command);
  app.add_option(
         "--a", command->args_a,
         "an engine argument of A alone, or endpoint=URL model=NAME of a server; may be repeated. One of --a and "
         "--b is required: it says what the arms differ in, such as --a qpn8=off --b qpn8=require")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--b", command->args_b, "the same for B, the candidate")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_generation_flags(app, command->request);
  add_verdict_flags(app, *command);
  app.add_option("--out", command->out, "the folder for items.jsonl, result.json and the reports")
      ->required()
      ->check(not_empty("a folder"))
      ->type_name("DIR");
  CLI::Option* resume = app.add_flag("--resume", command->resume, "go on with the unfinished run in --out");
  app.add_flag("--overwrite", command->overwrite, "drop an unfinished run in --out")->excludes(resume);
  command->common.add_to(app);
  app.callback([command] { compare(*command); });
}

}  // namespace qpn8::cli
