#include "cli/common_options.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "cli/progress.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EngineFlag {
  const char* flag;
  const char* key;
  const char* type;
  bool text;  ///< the value is taken as it is; otherwise as an engine argument's value is
};

constexpr std::array kEngineFlags = {
    EngineFlag{"--device", "device", "NAME", true}, EngineFlag{"--threads", "threads", "INTEGER", false},
    EngineFlag{"--tp", "tp", "INTEGER", false},     EngineFlag{"--pp", "pp", "INTEGER", false},
    EngineFlag{"--qpn8", "qpn8", "NAME", true},
};

EngineOptionDoc doc_of(std::string_view key) {
  const std::vector<EngineOptionDoc> docs = engine_option_docs();
  return *std::find_if(docs.begin(), docs.end(), [&](const EngineOptionDoc& doc) { return doc.key == key; });
}

std::string describe(std::string_view key) {
  const EngineOptionDoc doc = doc_of(key);
  return fmt::format("{}: {}", doc.meaning, doc.expected);
}

std::string describe_engine_args() {
  std::string text = "sets one option of the engine; every flag has its key. Known keys:";
  for (const EngineOptionDoc& doc : engine_option_docs()) {
    text += fmt::format("\n{}: {} ({})", doc.key, doc.meaning, doc.expected);
  }
  return text;
}

Json flag_value(const EngineFlag& flag, const std::string& text) {
  if (flag.text) return text;
  const std::array<std::string, 1> arg = {std::string(flag.key) + "=" + text};
  return parse_engine_args(arg)[flag.key];
}

// What an option holds after one argument, so that "a.json" and ["a.json"] compare equal.
Json applied(const std::string& key, const Json& value, const std::string& shown_as) {
  EngineOptions options;
  options.set(key, value, shown_as);
  return options.to_json()[key];
}

void set_log_level(const std::string& name) {
  constexpr std::array<std::string_view, 6> kNames = {"off", "error", "warn", "info", "debug", "trace"};
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
    throw Error(Error::bad_argument, fmt::format("--log-level {}: legal values: {}", name, fmt::join(kNames, ", ")));
  }
  spdlog::set_level(spdlog::level::from_str(name));
}

}  // namespace

void CommonOptions::add_to(CLI::App& command) {
  constexpr const char* kGroup = "Engine";
  for (const EngineFlag& flag : kEngineFlags) {
    const auto remember = [this, flag](const std::string& text) {
      flags_.push_back({flag.flag, flag.key, flag_value(flag, text)});
    };
    command.add_option_function<std::string>(flag.flag, remember, describe(flag.key))
        ->type_name(flag.type)
        ->group(kGroup);
  }
  command.add_option("--contract", contracts_, describe("contract"))
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group(kGroup);
  command.add_option("--engine-arg", engine_args_, describe_engine_args())
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->group(kGroup);
  command
      .add_option_function<std::string>("--log-level", set_log_level,
                                        "what is told on stderr: off, error, warn, info, debug or trace")
      ->type_name("NAME")
      ->group(kGroup);
}

nlohmann::ordered_json CommonOptions::engine_args() const {
  std::vector<GivenFlag> flags = flags_;
  if (!contracts_.empty()) flags.push_back({"--contract", "contract", contracts_});
  Json args = parse_engine_args(engine_args_);
  for (const GivenFlag& flag : flags) {
    const Json value = applied(flag.key, flag.value, flag.flag);
    if (args.contains(flag.key)) {
      const Json other = applied(flag.key, args[flag.key], "engine argument " + flag.key);
      if (other != value) {
        throw Error(Error::bad_argument, fmt::format("{} {}: the engine argument {} says {}; give one of the two",
                                                     flag.flag, value.dump(), flag.key, other.dump()));
      }
    }
    args[flag.key] = value;
  }
  return args;
}

EngineOptions CommonOptions::engine_options() const {
  EngineOptions options;
  options.apply(engine_args());
  return options;
}

LoadObserver stderr_observer() {
  const auto progress = std::make_shared<Progress>("loading weights");
  return {.planned = [](const Plan& plan) { spdlog::info("{}", summary_line(plan)); },
          .loaded = [progress](std::int64_t done, std::int64_t total) { progress->show(done, total); }};
}

void start_logging() {
  auto logger = std::make_shared<spdlog::logger>("qpn8", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%v");
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace qpn8::cli
