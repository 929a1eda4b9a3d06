#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "evidence/arm.hpp"
#include "evidence/dataset.hpp"

namespace qpn8::test {

/// An arm that answers by a function and writes down, into a list that arms may share, what it was asked.
class FakeArm : public Arm {
 public:
  using Answer = std::function<ArmOutput(std::span<const ChatMessage>, std::uint64_t)>;

  FakeArm(std::string name, Answer answer, std::vector<std::string>* calls = nullptr)
      : name_(std::move(name)), answer_(std::move(answer)), calls_(calls) {}

  ArmOutput generate(std::span<const ChatMessage> messages, std::uint64_t seed) override {
    if (calls_ != nullptr) calls_->push_back(fmt::format("{}:{}@{}", name_, messages.back().content, seed));
    return answer_(messages, seed);
  }
  nlohmann::ordered_json config() const override { return {{"name", name_}}; }
  std::optional<nlohmann::ordered_json> plan() const override { return std::nullopt; }

 private:
  std::string name_;
  Answer answer_;
  std::vector<std::string>* calls_;
};

/// An output of these tokens and this text at a fixed speed.
inline ArmOutput output(std::string text, std::vector<std::int32_t> tokens = {1, 2, 3}, double tokens_per_s = 100) {
  ArmOutput result;
  result.text = std::move(text);
  result.token_count = static_cast<std::int64_t>(tokens.size());
  result.tokens = std::move(tokens);
  result.finish_reason = "stop";
  result.ttft_ms = 5;
  result.decode_tokens_per_s = tokens_per_s;
  return result;
}

/// Items whose question is "q<i>" and whose answer is i.
inline std::vector<DatasetItem> numbered_items(std::int64_t count) {
  std::vector<DatasetItem> items;
  for (std::int64_t i = 0; i < count; ++i) {
    items.push_back({i, fmt::format("item-{}", i), {fmt::format("q{}", i)}, i});
  }
  return items;
}

}  // namespace qpn8::test
