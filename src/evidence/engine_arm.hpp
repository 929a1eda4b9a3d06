#pragma once

#include <filesystem>
#include <memory>

#include "engine/engine.hpp"
#include "evidence/arm.hpp"

namespace qpn8 {

/// An arm that is an engine in this process. Arms with equal options may share one.
///
/// The prompt of a conversation is the folder's chat template over it, with the generation prompt added; without a
/// template it is the plain text "QUESTION\nAnswer:", earlier turns before it with their answers, a blank line between.
class EngineArm : public Arm {
 public:
  /// `folder` is what the engine was loaded from. Error::bad_argument for settings out of range, Error::bad_file if the
  /// folder has no tokenizer.
  EngineArm(std::shared_ptr<Engine> engine, const std::filesystem::path& folder, const GenerationSettings& settings);

  ArmOutput generate(std::span<const ChatMessage> messages, std::uint64_t seed) override;
  nlohmann::ordered_json config() const override;
  std::optional<nlohmann::ordered_json> plan() const override;

 private:
  std::vector<TokenId> encode(std::span<const ChatMessage> messages) const;

  std::shared_ptr<Engine> engine_;
  bool has_template_;
  GenerationRequest request_;  ///< all but the prompt and the seed
};

/// The plain text of a conversation for a model without a chat template.
std::string plain_prompt(std::span<const ChatMessage> messages);

}  // namespace qpn8
