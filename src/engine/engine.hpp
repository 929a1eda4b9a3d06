#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_options.hpp"
#include "route/plan.hpp"
#include "text/tokenizer.hpp"

namespace qpn8 {

/// How the next token is chosen. temperature 0 is greedy (ties to the lower id) and ignores the rest but the penalty.
struct SamplingOptions {
  double temperature = 0.0;         ///< >= 0
  int top_k = 0;                    ///< 0: all
  double top_p = 1.0;               ///< (0, 1]
  double min_p = 0.0;               ///< [0, 1)
  double repetition_penalty = 1.0;  ///< > 0
  std::uint64_t seed = 0;

  /// Error::bad_argument naming the option and its legal range.
  void validate() const;
};

struct GenerationRequest {
  std::vector<TokenId> prompt;
  std::int64_t max_tokens = 256;
  SamplingOptions sampling;
  std::vector<std::string> stop;  ///< texts that end the output; not part of it
  bool ignore_eos = false;
};

enum class FinishReason : std::uint8_t { stop, length };

struct GenerationResult {
  std::vector<TokenId> output_ids;  ///< the stopping token not included
  std::string text;
  FinishReason finish_reason = FinishReason::length;
  double ttft_ms = 0.0;              ///< from the call to the first token
  double decode_tokens_per_s = 0.0;  ///< (output tokens - 1) / (last - first token's time); 0 for fewer than two
};

/// A loaded model with its tokenizer, ready to generate. One call at a time.
class Engine {
 public:
  /// Loads a Hugging Face folder: config, checkpoint, plan, weights, tokenizer. Errors as each part documents them.
  Engine(const std::filesystem::path& folder, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Plan& plan() const;
  const EngineOptions& options() const;
  const Tokenizer& tokenizer() const;  ///< Error::bad_file if the folder has none
  bool has_tokenizer() const;
  std::int64_t context_length() const;

  /// The prompt's ids for a chat: the folder's template, tokenized with exactly one BOS. `variables` is what the
  /// template sees (messages, tools, ...). Error::bad_value with the template's message, or Error::bad_file if there is
  /// no template.
  std::vector<TokenId> encode_chat(const nlohmann::ordered_json& variables) const;

  /// The prompt's ids for plain text, with the tokenizer's special tokens.
  std::vector<TokenId> encode_prompt(std::string_view text) const;

  /// Runs one request. `on_text` receives the text as it becomes certain. Error::bad_argument if the prompt is empty or
  /// longer than the context, or an id is outside the vocabulary; max_tokens is cut to the context, which finishes with
  /// `length`. Logits that are not finite are Error::check_failed.
  GenerationResult generate(const GenerationRequest& request,
                            const std::function<void(std::string_view)>& on_text = nullptr);

  /// Logits (F32 [ids, vocabulary], row-major) of every position of `ids` run from an empty cache in passes of at most
  /// `chunk` tokens; for tests and audits.
  std::vector<float> logits(std::span<const TokenId> ids, std::int64_t chunk);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qpn8
