#include "engine/generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "engine/stop_matcher.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// Tokens in, text out: decodes, watches for stop texts, hands on what is certain.
class TextOutput {
 public:
  TextOutput(const Tokenizer* tokenizer, std::span<const std::string> stops, const TextSink& sink)
      : tokenizer_(tokenizer), matcher_(stops), sink_(sink) {
    if (tokenizer_ != nullptr) decoder_.emplace(*tokenizer_, /*skip_special=*/true);
  }

  /// A model's vocabulary is often padded beyond the tokenizer's; those ids have no text.
  void push(TokenId id) {
    if (decoder_ && id < tokenizer_->vocabulary_size()) emit(matcher_.push(decoder_->push(id)));
  }

  void finish() {
    if (!decoder_) return;
    emit(matcher_.push(decoder_->finish()));
    emit(matcher_.finish());
  }

  bool stopped() const { return matcher_.matched(); }
  std::string take() { return std::move(text_); }

 private:
  void emit(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    if (sink_) sink_(piece);
  }

  const Tokenizer* tokenizer_;
  std::optional<StreamDecoder> decoder_;
  StopMatcher matcher_;
  const TextSink& sink_;
  std::string text_;
};

void validate(const GenerationContext& context, const GenerationRequest& request) {
  request.sampling.validate();
  if (request.max_tokens < 1) throw Error(Error::bad_argument, "max_tokens: must be at least 1");
  if (!request.stop.empty() && context.tokenizer == nullptr) {
    throw Error(Error::bad_argument, "stop: the model has no tokenizer to find texts with");
  }
  require_prompt(request.prompt, context.vocabulary, context.context_length);
  if (static_cast<std::int64_t>(request.prompt.size()) == context.context_length) {
    throw Error(Error::bad_argument,
                fmt::format("prompt has {} tokens, as many as the context; output needs room for one at least",
                            context.context_length));
  }
}

}  // namespace

void require_prompt(std::span<const TokenId> ids, std::int64_t vocabulary, std::int64_t context_length) {
  if (ids.empty()) throw Error(Error::bad_argument, "prompt: is empty; at least one token is needed");
  if (static_cast<std::int64_t>(ids.size()) > context_length) {
    throw Error(Error::bad_argument,
                fmt::format("prompt has {} tokens; the context is {}", ids.size(), context_length));
  }
  for (const TokenId id : ids) {
    if (id >= 0 && id < vocabulary) continue;
    throw Error(Error::bad_argument,
                fmt::format("prompt: token {} is outside the model's vocabulary of {}", id, vocabulary));
  }
}

GenerationResult generate(const GenerationContext& context, const GenerationRequest& request, const TextSink& on_text) {
  const Clock::time_point start = Clock::now();
  validate(context, request);
  const std::int64_t room = context.context_length - static_cast<std::int64_t>(request.prompt.size());
  const auto most = static_cast<std::size_t>(std::min(request.max_tokens, room));
  TextOutput text(context.tokenizer, request.stop, on_text);
  GenerationResult result;
  result.output_ids.reserve(most);

  context.runner.reset();
  context.sampler.start(request.sampling, request.prompt);
  std::span<float> logits = context.runner.extend(request.prompt);
  Clock::time_point first;
  Clock::time_point last;
  while (true) {
    const std::optional<TokenId> token = context.sampler.next(logits);
    if (!token) context.runner.raise_non_finite();
    const Clock::time_point now = Clock::now();
    if (result.output_ids.empty()) first = now;
    const bool ends =
        std::find(context.end_tokens.begin(), context.end_tokens.end(), *token) != context.end_tokens.end();
    if (ends && !request.ignore_eos) {
      result.finish_reason = FinishReason::stop;
      break;
    }
    last = now;
    result.output_ids.push_back(*token);
    text.push(*token);
    if (text.stopped() || result.output_ids.size() == most) break;
    logits = context.runner.extend({&*token, 1});
  }
  text.finish();
  if (text.stopped()) result.finish_reason = FinishReason::stop;

  result.text = text.take();
  result.ttft_ms = seconds_between(start, first) * 1e3;
  const auto steps = static_cast<double>(result.output_ids.size()) - 1;
  if (steps > 0 && last > first) result.decode_tokens_per_s = steps / seconds_between(first, last);
  return result;
}

}  // namespace qpn8
