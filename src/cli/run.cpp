#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/input_stream.hpp"
#include "cli/commands.hpp"
#include "cli/common_options.hpp"
#include "cli/generation_flags.hpp"
#include "cli/model_folder.hpp"
#include "cli/number.hpp"
#include "cli/output.hpp"
#include "engine/engine.hpp"
#include "engine/front_end.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RunOptions {
  CommonOptions common;
  std::string model;
  std::optional<std::string> prompt;
  std::optional<std::string> chat;
  std::optional<std::string> prompt_ids;
  std::optional<std::string> system;
  GenerationRequest request;
  bool json = false;
};

RequestNames names_for(const RunOptions& options) {
  const char* prompt = options.prompt_ids ? "--prompt-ids"
                       : options.prompt   ? "--prompt"
                       : options.chat     ? "--chat"
                                          : "stdin";
  return {.prompt = prompt, .flags = true};
}

std::string read_stdin() {
  constexpr std::size_t kMost = std::size_t{64} << 20;  // far beyond any context
  return InputStream(STDIN_FILENO, "stdin").read_to_end(kMost);
}

std::vector<TokenId> encode(const FrontEnd& front_end, const RunOptions& options, const RequestNames& names) {
  front_end.tokenizer();  // a model without one must not wait for its stdin
  const std::string text = options.prompt ? *options.prompt : options.chat ? *options.chat : read_stdin();
  if (text.empty()) {
    throw Error(Error::bad_argument, fmt::format("{}: the prompt is empty; expected some text", names.prompt));
  }
  if (!options.chat) return front_end.encode_prompt(text);
  Json messages = Json::array();
  if (options.system) messages.push_back({{"role", "system"}, {"content", *options.system}});
  messages.push_back({{"role", "user"}, {"content", text}});
  return front_end.encode_chat({{"messages", messages}, {"add_generation_prompt", true}});
}

std::string to_json_line(const GenerationRequest& request, const GenerationResult& result) {
  const Json json = {
      {"prompt_ids", request.prompt}, {"output_ids", result.output_ids},
      {"text", result.text},          {"finish_reason", result.finish_reason == FinishReason::stop ? "stop" : "length"},
      {"ttft_ms", result.ttft_ms},    {"decode_tokens_per_s", result.decode_tokens_per_s}};
  return json.dump() + "\n";
}

/// Says that an output was ended by the context rather than by what was asked for.
void warn_of_context_end(const GenerationRequest& request, const GenerationResult& result, std::int64_t context) {
  const auto room = context - static_cast<std::int64_t>(request.prompt.size());
  if (result.finish_reason == FinishReason::stop || room >= request.max_tokens) return;
  spdlog::warn("qpn8: the output ends where the context of {} tokens does: {} of prompt leave {} of --max-tokens {}",
               context, request.prompt.size(), room, request.max_tokens);
}

/// Everything that needs no weights comes before them, so that a wrong flag costs no loading.
void run(RunOptions& options) {
  GenerationRequest& request = options.request;
  const RequestNames names = names_for(options);
  request.validate(names);
  if (options.prompt_ids) request.prompt = parse_numbers<TokenId>("--prompt-ids", *options.prompt_ids);
  FrontEnd front_end(options.model, options.common.engine_options());
  if (!options.prompt_ids) request.prompt = encode(front_end, options, names);
  require_valid(request, front_end.limits(), names);

  Engine engine(std::move(front_end), stderr_observer());
  const bool streams = !options.json && engine.has_tokenizer();
  const GenerationResult result =
      engine.generate(request, streams ? std::function<void(std::string_view)>(write_output) : nullptr);
  if (options.json) {
    write_output(to_json_line(request, result));
  } else if (streams) {
    write_output("\n");
  } else {
    write_output(fmt::format("{}\n", fmt::join(result.output_ids, ",")));
  }
  warn_of_context_end(request, result, engine.context_length());
  spdlog::info("qpn8: {} tokens of prompt, {} of output; the first after {:.1f} ms, then {:.1f} tokens/s",
               request.prompt.size(), result.output_ids.size(), result.ttft_ms, result.decode_tokens_per_s);
}

void add_prompt_flags(CLI::App& command, RunOptions& options) {
  constexpr const char* kGroup = "Prompt (stdin, if none is given)";
  CLI::Option* prompt = command.add_option("--prompt", options.prompt, "a text that the model goes on with");
  CLI::Option* chat = command.add_option("--chat", options.chat, "what a user says; the model's chat template applies");
  CLI::Option* ids = command.add_option("--prompt-ids", options.prompt_ids, "token ids separated by commas");
  for (CLI::Option* option : {prompt, chat, ids}) option->group(kGroup);
  prompt->excludes(chat, ids);
  chat->excludes(ids);
  command.add_option("--system", options.system, "the chat's system message")->needs(chat)->group(kGroup);
}

}  // namespace

void add_run(CLI::App& program) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App& command = *program.add_subcommand("run", "Generate text");
  command.add_option("--model", options->model, "a Hugging Face folder")
      ->required()
      ->check(model_folder())
      ->type_name("DIR");
  add_prompt_flags(command, *options);
  add_generation_flags(command, options->request);
  add_number(command, "--seed", options->request.sampling.seed, "the same seed gives the same samples [0]");
  command.add_flag("--json", options->json, "print one JSON object instead of the text");
  options->common.add_to(command);
  command.callback([options] { run(*options); });
}

}  // namespace qpn8::cli
