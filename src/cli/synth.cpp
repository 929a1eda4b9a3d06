#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/presets.hpp"
#include "checkpoint/synthetic.hpp"
#include "cli/commands.hpp"
#include "cli/not_empty.hpp"
#include "cli/number.hpp"
#include "cli/progress.hpp"
#include "qpn8/error.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cli {
namespace {

struct SynthOptions {
  std::string like;
  std::filesystem::path out;
  std::int64_t layers = 0;   // 0: as published
  std::int64_t experts = 0;  // 0: as published
  std::int64_t ngram_rows = 0;
  std::uint64_t seed = 0;
  std::string dtype = "bf16";
  std::int64_t shard_mb = 4096;
  int threads = 0;  // 0: one a core
};

DType dtype_of(const std::string& name) {
  if (name == "f16") return DType::f16;
  if (name == "bf16") return DType::bf16;
  throw Error(Error::bad_argument, fmt::format("--dtype {}: expected f16 or bf16", name));
}

void synth(const SynthOptions& options, const CLI::App& command) {
  const auto given = [&](const char* flag, std::int64_t value) {
    return command.count(flag) > 0 ? std::optional(value) : std::nullopt;
  };
  check_range("--shard-mb", options.shard_mb, 1, std::int64_t{1} << 30);
  check_range("--threads", options.threads, 0, 1024);

  SyntheticOptions synthetic;
  synthetic.seed = options.seed;
  synthetic.dtype = dtype_of(options.dtype);
  synthetic.shard_bytes = static_cast<std::size_t>(options.shard_mb) << 20;
  const ModelConfig config =
      reduced_config(preset_config(options.like), {.layers = given("--layers", options.layers),
                                                   .experts = given("--experts", options.experts),
                                                   .ngram_rows = given("--ngram-rows", options.ngram_rows)});
  ThreadTeam team(options.threads > 0 ? options.threads : processor_count());
  Progress progress("writing " + options.like);
  synthetic.progress = [&](std::int64_t done, std::int64_t total) { progress.show(done, total); };
  write_synthetic_checkpoint(config, options.out, synthetic, team);
}

}  // namespace

void add_synth(CLI::App& program) {
  const auto options = std::make_shared<SynthOptions>();
  CLI::App& command = *program.add_subcommand("synth", "Write a random checkpoint with a published model's shapes");
  command.add_option("--like", options->like, fmt::format("the model: {}", fmt::join(preset_names(), ", ")))
      ->required()
      ->type_name("NAME");
  command.add_option("--out", options->out, "a new or an empty folder")
      ->required()
      ->check(not_empty("a folder"))
      ->type_name("DIR");
  add_number(command, "--layers", options->layers, "only so many layers");
  add_number(command, "--experts", options->experts, "only so many experts a layer");
  add_number(command, "--ngram-rows", options->ngram_rows, "only so many rows in each n-gram table, about");
  add_number(command, "--seed", options->seed, "the same seed gives the same bytes (default 0)");
  command.add_option("--dtype", options->dtype, "f16 or bf16 (default bf16)")->type_name("TYPE");
  add_number(command, "--shard-mb", options->shard_mb, "largest shard in MiB (default 4096)");
  add_number(command, "--threads", options->threads, "default: one a core");
  command.callback([options, &command] { synth(*options, command); });
}

}  // namespace qpn8::cli
