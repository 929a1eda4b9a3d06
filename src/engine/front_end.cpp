#include "engine/front_end.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/directory_entry.hpp"
#include "model/architecture.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

void require_one_rank(const EngineOptions& options) {
  const auto refuse = [](const char* name, int value) {
    throw Error(Error::unsupported,
                fmt::format("--{} {}: this qpn8 has no communicator and runs on one rank (qpn8 plan describes any); "
                            "legal value: 1",
                            name, value));
  };
  if (options.tp > 1) refuse("tp", options.tp);
  if (options.pp > 1) refuse("pp", options.pp);
}

std::optional<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.json";
  if (!entry_exists(file)) return std::nullopt;
  return Tokenizer(file);
}

}  // namespace

FrontEnd::FrontEnd(std::filesystem::path folder, const EngineOptions& options)
    : folder_(std::move(folder)),
      options_(options),
      hardware_(chosen_hardware(options)),
      config_(load_model_config(folder_)),
      context_length_(qpn8::context_length(config_, options.max_model_len)),
      end_tokens_(qpn8::end_tokens(config_, load_generation_config(folder_), folder_)) {
  require_one_rank(options);
  describe_projections(config_, topology_of(options), nullptr);
  rules_ = read_route_rules(options);
  tokenizer_ = load_tokenizer(folder_);
}

RequestLimits FrontEnd::limits() const {
  return {.vocabulary = config_.vocab_size, .context_length = context_length_, .has_tokenizer = has_tokenizer()};
}

const Tokenizer& FrontEnd::tokenizer() const {
  if (!has_tokenizer()) {
    throw Error(Error::bad_file,
                fmt::format("{}: no such file; text needs a tokenizer, without one a prompt is token ids",
                            (folder_ / "tokenizer.json").string()));
  }
  return *tokenizer_;
}

std::optional<ChatTemplate> FrontEnd::chat_template() const { return load_chat_template(folder_); }

std::vector<TokenId> FrontEnd::encode_chat(const nlohmann::ordered_json& variables) const {
  const std::optional<ChatTemplate> chat = chat_template();
  if (!chat) {
    throw Error(Error::bad_file,
                fmt::format("{}: no chat template in chat_template.jinja or tokenizer_config.json; the model takes a "
                            "plain prompt",
                            folder_.string()));
  }
  nlohmann::ordered_json seen = load_template_tokens(folder_);
  for (const auto& [key, value] : variables.items()) seen[key] = value;
  const std::string prompt = chat->render(seen);
  if (prompt.empty()) {
    throw Error(
        Error::bad_file,
        fmt::format("{}: the chat template renders nothing for these messages; expected a prompt", folder_.string()));
  }
  return encode_prompt(prompt);
}

std::vector<TokenId> FrontEnd::encode_prompt(std::string_view text) const {
  return tokenizer().encode(text, /*special=*/true);
}

std::int64_t context_length(const ModelConfig& config, std::int64_t max_model_len) {
  if (max_model_len == 0 && config.max_positions == 0) {
    throw Error(Error::bad_argument,
                fmt::format("max_model_len: {} has no max_position_embeddings, so the context's length must be given",
                            config.file.string()));
  }
  if (config.max_positions > 0 && max_model_len > config.max_positions) {
    throw Error(Error::bad_argument,
                fmt::format("max_model_len: {} is more than the model has positions for; legal values: 1 to {}",
                            max_model_len, config.max_positions));
  }
  return max_model_len > 0 ? max_model_len : config.max_positions;
}

std::vector<TokenId> end_tokens(const ModelConfig& config, const GenerationConfig& generation,
                                const std::filesystem::path& folder) {
  const bool generations = !generation.eos_tokens.empty();
  std::vector<TokenId> ids;
  for (const std::int64_t id : generations ? generation.eos_tokens : config.eos_tokens) {
    if (id < 0 || id >= config.vocab_size) {
      const std::filesystem::path file = generations ? folder / "generation_config.json" : config.file;
      throw Error(Error::bad_file, fmt::format("{}: eos_token_id {} is outside the vocabulary of {}", file.string(), id,
                                               config.vocab_size));
    }
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

}  // namespace qpn8
