#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "cli/common_options.hpp"
#include "cli/model_folder.hpp"
#include "cli/number.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "measure/bars.hpp"
#include "measure/bench.hpp"
#include "measure/bench_output.hpp"
#include "measure/shapes_file.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cli {
namespace {

struct BenchCommand {
  CommonOptions common;
  std::optional<std::string> model;
  std::optional<std::string> shapes;
  std::optional<std::string> growth_model;
  std::optional<std::string> rows;
  std::optional<std::string> contexts;
  std::optional<std::string> parts;
  BenchOptions options;
  std::int64_t rotation_mb = 0;
  bool ignore_eos = false;
  bool check = false;
  bool json = false;
};

void choose_parts(const std::string& list, BenchOptions& options) {
  struct Part {
    std::string_view name;
    bool BenchOptions::*wanted;
  };
  constexpr std::array kParts = {Part{"operators", &BenchOptions::operators}, Part{"decode", &BenchOptions::decode},
                                 Part{"prefill", &BenchOptions::prefill}, Part{"load", &BenchOptions::load}};
  for (const Part& part : kParts) options.*part.wanted = false;
  std::istringstream stream(list + ",");
  for (std::string name; std::getline(stream, name, ',');) {
    const auto* part = std::find_if(kParts.begin(), kParts.end(), [&](const Part& p) { return p.name == name; });
    if (part == kParts.end()) {
      throw Error(Error::bad_argument,
                  fmt::format("--parts {}: legal values: operators, decode, prefill, load, separated by commas", list));
    }
    options.*part->wanted = true;
  }
}

/// What the check needs, and no more: the bars of operators and decode.
void restrict_to_check(BenchOptions& options) {
  options.prefill = false;
  options.load = false;
  options.rows = {1, 8};
  options.contexts = {128};
}

BenchOptions options_of(const BenchCommand& command) {
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;
  BenchOptions options = command.options;
  if (command.check) restrict_to_check(options);
  if (command.parts) choose_parts(*command.parts, options);
  if (command.rows) options.rows = parse_distinct("--rows", *command.rows, 1, 65536);
  if (command.contexts) options.contexts = parse_distinct("--contexts", *command.contexts, 1, kMostTokens);
  if (command.growth_model) options.growth_model = *command.growth_model;
  std::sort(options.contexts.begin(), options.contexts.end());
  check_range("--prefill", options.prefill_tokens, 1, kMostTokens);
  check_range("--repeats", options.repeats.counted, 1, 1000);
  check_range("--warmups", options.repeats.warmups, 0, 1000);
  check_range("--rotation-mb", command.rotation_mb, 0, std::int64_t{1} << 20);
  options.rotation_bytes = command.rotation_mb << 20;
  return options;
}

/// Error::check_failed with the figures that do not hold; of all bars, `--check` is about the first two.
void require_bars(const BenchResult& result) {
  constexpr int kLastChecked = 2;
  std::vector<std::string> failed;
  int checked = 0;
  for (const Bar& bar : bars_of(result)) {
    if (bar.number > kLastChecked) continue;
    ++checked;
    if (bar.holds()) continue;
    failed.push_back(fmt::format("{} is {:.2f}, expected {} {:.2f}", bar.what, bar.seen,
                                 bar.at_least ? "at least" : "at most", bar.limit));
  }
  if (checked == 0) {
    throw Error(Error::check_failed, "--check: nothing runs on QPN8 here, so no bar was measured; see 'qpn8 plan'");
  }
  if (!failed.empty()) throw Error(Error::check_failed, fmt::format("--check: {}", fmt::join(failed, "; ")));
}

void bench(const BenchCommand& command) {
  const EngineOptions engine = command.common.engine_options();
  const BenchOptions options = options_of(command);
  if (!command.model && !command.shapes) {
    throw Error(Error::bad_argument, "qpn8 bench: nothing to measure; expected --model DIR or --shapes FILE");
  }
  BenchResult result;
  {
    Progress progress("measuring");
    const SampleObserver show = [&progress](std::int64_t done, std::int64_t total) { progress.show(done, total); };
    result = command.model ? bench_model(*command.model, engine, options, show)
                           : bench_shapes(load_shapes(*command.shapes), engine, options, show);
  }
  write_output(command.json ? to_json(result).dump(2) + "\n" : to_table(result));
  if (command.check) require_bars(result);
}

void add_what(CLI::App& app, BenchCommand& command) {
  CLI::Option* model =
      app.add_option("--model", command.model, "a Hugging Face folder")->check(model_folder())->type_name("DIR");
  app.add_option("--shapes", command.shapes, R"(operators alone: a JSON list of {"role", "k", "n"})")
      ->type_name("FILE")
      ->excludes(model);
  app.add_option("--growth-model", command.growth_model,
                 "a smaller model, to see what a token costs beside the bytes it reads")
      ->type_name("DIR")
      ->needs(model);
  app.add_option("--parts", command.parts, "what to measure [operators,decode,prefill,load]")->type_name("LIST");
  app.add_option("--rows", command.rows, "rows of the operators [1,2,4,8,9,64]")->type_name("1,2,3");
  app.add_option("--contexts", command.contexts, "tokens before the first decode step [128,4096]")->type_name("1,2,3");
  add_number(app, "--prefill", command.options.prefill_tokens, "tokens of the prefill's prompt [512]");
}

void add_how(CLI::App& app, BenchCommand& command) {
  add_number(app, "--repeats", command.options.repeats.counted, "samples of each figure [7]");
  add_number(app, "--warmups", command.options.repeats.warmups, "samples before those, which do not count [1]");
  add_number(app, "--rotation-mb", command.rotation_mb,
             "MiB of weights that an operator's calls rotate through [twice the last-level cache]");
  app.add_flag("--ignore-eos", command.ignore_eos, "go on after an end-of-sequence token, as this command always does");
  app.add_flag("--check", command.check,
               "exit with status 1 unless the bars of operators and decode hold; measures no more than they need");
  app.add_flag("--json", command.json, "print one JSON object instead of the tables");
}

}  // namespace

void add_bench(CLI::App& program) {
  const auto command = std::make_shared<BenchCommand>();
  CLI::App& app =
      *program.add_subcommand("bench", "Measure operators, decode, prefill and loading beside the machine's own speed");
  add_what(app, *command);
  add_how(app, *command);
  command->common.add_to(app);
  app.callback([command] { bench(*command); });
}

}  // namespace qpn8::cli
