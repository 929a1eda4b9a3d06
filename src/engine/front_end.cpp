#include "engine/front_end.hpp"

#include <string>
#include <utility>

#include "model/architecture.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

// One rank runs everything so far; what the model could be split into has been checked by its projections.
void require_one_rank(const EngineOptions& options) {
  const auto refuse = [](const char* name, int value) {
    throw Error(Error::unsupported, "--" + std::string(name) + " " + std::to_string(value) +
                                        ": this qpn8 runs on one rank; legal value: 1");
  };
  if (options.tp > 1) refuse("tp", options.tp);
  if (options.pp > 1) refuse("pp", options.pp);
}

std::optional<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.json";
  if (!std::filesystem::exists(file)) return std::nullopt;
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
  find_architecture(config_).projections(config_, topology_of(options));
  require_one_rank(options);
  rules_ = read_route_rules(options);
  tokenizer_ = load_tokenizer(folder_);
}

RequestLimits FrontEnd::limits() const {
  return {.vocabulary = config_.vocab_size, .context_length = context_length_, .has_tokenizer = has_tokenizer()};
}

const Tokenizer& FrontEnd::tokenizer() const {
  if (!has_tokenizer()) {
    throw Error(Error::bad_file, (folder_ / "tokenizer.json").string() +
                                     ": no such file; text needs a tokenizer, without one a prompt is token ids");
  }
  return *tokenizer_;
}

std::optional<ChatTemplate> FrontEnd::chat_template() const { return load_chat_template(folder_); }

std::vector<TokenId> FrontEnd::encode_chat(const nlohmann::ordered_json& variables) const {
  const std::optional<ChatTemplate> chat = chat_template();
  if (!chat) {
    throw Error(Error::bad_file, folder_.string() +
                                     ": no chat template in chat_template.jinja or tokenizer_config.json; the model "
                                     "takes a plain prompt");
  }
  nlohmann::ordered_json seen = load_template_tokens(folder_);
  for (const auto& [key, value] : variables.items()) seen[key] = value;
  return encode_prompt(chat->render(seen));
}

std::vector<TokenId> FrontEnd::encode_prompt(std::string_view text) const {
  return tokenizer().encode(text, /*special=*/true);
}

std::int64_t context_length(const ModelConfig& config, std::int64_t max_model_len) {
  if (max_model_len == 0 && config.max_positions == 0) {
    throw Error(Error::bad_argument, "max_model_len: " + config.file.string() +
                                         " has no max_position_embeddings, so the context's length must be given");
  }
  if (config.max_positions > 0 && max_model_len > config.max_positions) {
    throw Error(Error::bad_argument, "max_model_len: " + std::to_string(max_model_len) +
                                         " is more than the model has positions for; legal values: 1 to " +
                                         std::to_string(config.max_positions));
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
      throw Error(Error::bad_file, file.string() + ": eos_token_id " + std::to_string(id) +
                                       " is outside the vocabulary of " + std::to_string(config.vocab_size));
    }
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

}  // namespace qpn8
