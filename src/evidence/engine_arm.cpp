#include "evidence/engine_arm.hpp"

#include <utility>

#include "qpn8/error.hpp"
#include "text/chat_template.hpp"

namespace qpn8 {

EngineArm::EngineArm(std::shared_ptr<Engine> engine, const std::filesystem::path& folder,
                     const GenerationSettings& settings)
    : engine_(std::move(engine)), has_template_(load_chat_template(folder).has_value()) {
  if (!engine_->has_tokenizer()) {
    throw Error(Error::bad_file, (folder / "tokenizer.json").string() + ": no such file; questions need a tokenizer");
  }
  request_.max_tokens = settings.max_tokens;
  request_.ignore_eos = settings.ignore_eos;
  request_.sampling.temperature = settings.temperature;
  request_.sampling.top_p = settings.top_p;
  request_.sampling.top_k = settings.top_k;
  request_.sampling.validate();
}

ArmOutput EngineArm::generate(std::span<const ChatMessage> messages, std::uint64_t seed) {
  GenerationRequest request = request_;
  request.prompt = encode(messages);
  request.sampling.seed = seed;
  GenerationResult result = engine_->generate(request);
  ArmOutput output;
  output.text = std::move(result.text);
  output.token_count = static_cast<std::int64_t>(result.output_ids.size());
  output.tokens = std::move(result.output_ids);
  output.finish_reason = result.finish_reason == FinishReason::stop ? "stop" : "length";
  output.ttft_ms = result.ttft_ms;
  output.decode_tokens_per_s = result.decode_tokens_per_s;
  return output;
}

std::vector<TokenId> EngineArm::encode(std::span<const ChatMessage> messages) const {
  if (!has_template_) return engine_->encode_prompt(plain_prompt(messages));
  auto list = nlohmann::ordered_json::array();
  for (const ChatMessage& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  return engine_->encode_chat({{"messages", std::move(list)}, {"add_generation_prompt", true}});
}

nlohmann::ordered_json EngineArm::config() const { return engine_->options().to_json(); }

std::optional<nlohmann::ordered_json> EngineArm::plan() const { return to_json(engine_->plan()); }

std::string plain_prompt(std::span<const ChatMessage> messages) {
  std::string text;
  for (const ChatMessage& message : messages) {
    if (message.role == "assistant") {
      text += " " + message.content + "\n\n";
    } else {
      text += message.content + "\nAnswer:";
    }
  }
  return text;
}

}  // namespace qpn8
