#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.hpp"
#include "cli/common_options.hpp"
#include "cli/number.hpp"
#include "cli/output.hpp"
#include "engine/engine.hpp"
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

std::vector<TokenId> parse_ids(const std::string& list) {
  std::vector<TokenId> ids;
  std::size_t begin = 0;
  while (begin <= list.size() && !list.empty()) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    ids.push_back(parse_number<TokenId>("--prompt-ids", list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return ids;
}

std::string read_stdin() {
  constexpr std::size_t kMost = std::size_t{64} << 20;  // far beyond any context, and an end to an endless stream
  std::string text;
  std::array<char, 1 << 16> block{};
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
    if (count == 0) return text;
    if (count < 0) {
      if (errno == EINTR) continue;
      throw Error(Error::bad_file, "stdin: " + std::generic_category().message(errno));
    }
    text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > kMost) throw Error(Error::bad_file, "stdin: the prompt is longer than 64 MiB");
  }
}

/// The prompt before it is tokenized: a text, or a chat, or ids.
void read_prompt(RunOptions& options) {
  if (options.prompt_ids) {
    options.request.prompt = parse_ids(*options.prompt_ids);
    if (options.request.prompt.empty()) throw Error(Error::bad_argument, "--prompt-ids: is empty; expected 1,2,3");
    return;
  }
  const std::filesystem::path tokenizer = std::filesystem::path(options.model) / "tokenizer.json";
  if (std::filesystem::is_directory(options.model) && !std::filesystem::exists(tokenizer)) {
    throw Error(Error::bad_file, tokenizer.string() + ": no such file; without it the prompt must be --prompt-ids");
  }
  const char* source = options.prompt ? "--prompt" : options.chat ? "--chat" : "stdin";
  if (!options.prompt && !options.chat) options.prompt = read_stdin();
  if ((options.chat ? *options.chat : *options.prompt).empty()) {
    throw Error(Error::bad_argument, fmt::format("{}: the prompt is empty; expected some text", source));
  }
}

std::vector<TokenId> encode(const Engine& engine, const RunOptions& options) {
  if (options.prompt_ids) return options.request.prompt;
  if (!options.chat) return engine.encode_prompt(*options.prompt);
  Json messages = Json::array();
  if (options.system) messages.push_back({{"role", "system"}, {"content", *options.system}});
  messages.push_back({{"role", "user"}, {"content", *options.chat}});
  return engine.encode_chat({{"messages", messages}, {"add_generation_prompt", true}});
}

std::string to_json_line(const GenerationRequest& request, const GenerationResult& result) {
  const Json json = {
      {"prompt_ids", request.prompt}, {"output_ids", result.output_ids},
      {"text", result.text},          {"finish_reason", result.finish_reason == FinishReason::stop ? "stop" : "length"},
      {"ttft_ms", result.ttft_ms},    {"decode_tokens_per_s", result.decode_tokens_per_s}};
  return json.dump() + "\n";
}

void run(RunOptions& options) {
  const EngineOptions engine_options = options.common.engine_options();
  options.request.sampling.validate();
  read_prompt(options);

  Engine engine(options.model, engine_options, stderr_observer());
  GenerationRequest& request = options.request;
  request.prompt = encode(engine, options);
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

void add_generation_flags(CLI::App& command, GenerationRequest& request) {
  SamplingOptions& sampling = request.sampling;
  add_number(command, "--max-tokens", request.max_tokens, "most tokens of output [256]");
  add_number(command, "--temperature", sampling.temperature, "0 takes the likeliest token each time [0]");
  add_number(command, "--top-k", sampling.top_k, "sample from so many of the likeliest tokens; 0 is all [0]");
  add_number(command, "--top-p", sampling.top_p, "sample from the likeliest tokens with this probability together [1]");
  add_number(command, "--min-p", sampling.min_p, "leave out tokens below this fraction of the likeliest one's [0]");
  add_number(command, "--repetition-penalty", sampling.repetition_penalty, "above 1 discourages what was there [1]");
  add_number(command, "--seed", sampling.seed, "the same seed gives the same samples [0]");
  command.add_option("--stop", request.stop, "ends the output at this text; may be repeated")->allow_extra_args(false);
  command.add_flag("--ignore-eos", request.ignore_eos, "go on after an end-of-sequence token");
}

}  // namespace

void add_run(CLI::App& program) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App& command = *program.add_subcommand("run", "Generate text");
  command.add_option("--model", options->model, "a Hugging Face folder")->required()->type_name("DIR");
  add_prompt_flags(command, *options);
  add_generation_flags(command, options->request);
  command.add_flag("--json", options->json, "print one JSON object instead of the text");
  options->common.add_to(command);
  command.callback([options] { run(*options); });
}

}  // namespace qpn8::cli
