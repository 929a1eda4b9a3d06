#include "evidence/engine_arm.hpp"

#include <utility>

#include "qpn8/error.hpp"
#include "text/chat_template.hpp"

namespace qpn8 {

ConversationEncoder::ConversationEncoder(const FrontEnd& front_end)
    : front_end_(&front_end), has_template_(front_end.chat_template().has_value()) {
  front_end.tokenizer();
}

std::vector<TokenId> ConversationEncoder::encode(std::span<const ChatMessage> messages) const {
  if (!has_template_) return front_end_->encode_prompt(plain_prompt(messages));
  auto list = nlohmann::ordered_json::array();
  for (const ChatMessage& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  return front_end_->encode_chat({{"messages", std::move(list)}, {"add_generation_prompt", true}});
}

EngineArm::EngineArm(std::shared_ptr<Engine> engine, GenerationRequest request)
    : engine_(std::move(engine)), encoder_(engine_->front_end()), request_(std::move(request)) {
  request_.validate();
}

ArmOutput EngineArm::generate(std::span<const ChatMessage> messages, std::uint64_t seed) {
  GenerationRequest request = request_;
  request.prompt = encoder_.encode(messages);
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

nlohmann::ordered_json EngineArm::config() const { return engine_->options().to_json(); }

std::optional<nlohmann::ordered_json> EngineArm::plan() const { return to_json(engine_->plan()); }

void require_qpn8(const Plan& candidate) {
  if (candidate.count(Route::qpn8) > 0) return;
  const auto& projections = candidate.projections();
  const std::string reason = projections.empty() ? "it has no projections" : projections.front().reason;
  throw Error(Error::missing_capability,
              "arm b: no projection of it runs on QPN8 (the first: " + reason + "); see 'qpn8 plan' for the others");
}

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
