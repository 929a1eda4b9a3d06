#include "engine/generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

}  // namespace

GenerationResult generate(const GenerationContext& context, const GenerationRequest& request, const TextSink& on_text) {
  const Clock::time_point start = Clock::now();
  require_valid(request, {context.vocabulary, context.context_length, context.tokenizer != nullptr});
  const std::int64_t room = context.context_length - static_cast<std::int64_t>(request.prompt.size());
  const auto most = static_cast<std::size_t>(std::min(request.max_tokens, room));
  TextOutput text(context.tokenizer, request.stop, on_text);
  GenerationResult result;
  result.output_ids.reserve(most);

  context.runner.reset();
  context.sampler.start(request.sampling, request.prompt);
  const auto choose = [&](std::span<const TokenId> ids) {
    return request.sampling.takes_largest() ? context.runner.extend_greedily(ids)
                                            : context.sampler.next(context.runner.extend(ids));
  };
  std::optional<TokenId> token = choose(request.prompt);
  Clock::time_point first;
  Clock::time_point last;
  while (true) {
    if (!token) {
      std::vector<TokenId> ids = request.prompt;
      ids.insert(ids.end(), result.output_ids.begin(), result.output_ids.end());
      context.runner.raise_non_finite(ids);
    }
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
    token = choose(std::array{*token});
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
