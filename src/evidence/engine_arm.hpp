#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "evidence/arm.hpp"

namespace qpn8 {

/// Makes prompts of conversations: the model's chat template over it, with the generation prompt added; without a
/// template the plain text of plain_prompt().
class ConversationEncoder {
 public:
  /// The front end has to outlive it. Error::bad_file if it has no tokenizer, Error::bad_value if its template is
  /// wrong.
  explicit ConversationEncoder(const FrontEnd& front_end);

  /// Error::bad_value with the message of a template that refuses the conversation.
  std::vector<TokenId> encode(std::span<const ChatMessage> messages) const;

 private:
  const FrontEnd* front_end_;
  bool has_template_;
};

/// An arm that is an engine in this process. Arms with equal options may share one.
class EngineArm : public Arm {
 public:
  /// `request` is what each output is asked with; its prompt and its seed come with the item. Error::bad_argument for a
  /// value out of range, Error::bad_file if the model has no tokenizer.
  EngineArm(std::shared_ptr<Engine> engine, GenerationRequest request);

  ArmOutput generate(std::span<const ChatMessage> messages, std::uint64_t seed) override;
  nlohmann::ordered_json config() const override;
  std::optional<nlohmann::ordered_json> plan() const override;

 private:
  std::shared_ptr<Engine> engine_;
  ConversationEncoder encoder_;
  GenerationRequest request_;
};

/// Error::missing_capability if no projection of the candidate is on QPN8: such a comparison would end in a tie that
/// says nothing.
void require_qpn8(const Plan& candidate);

/// The plain text of a conversation for a model without a chat template: "QUESTION\nAnswer:", earlier turns before it
/// with their answers, a blank line between.
std::string plain_prompt(std::span<const ChatMessage> messages);

}  // namespace qpn8
