#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.hpp"

namespace qpn8 {

/// How the next token is chosen. temperature 0 is greedy (ties to the lower id) and ignores the rest but the penalty.
///
/// The steps run in the order in which Hugging Face runs them: penalty, temperature, top-k, top-p, min-p.
struct SamplingOptions {
  double temperature = 0.0;         ///< >= 0
  int top_k = 0;                    ///< 0: all
  double top_p = 1.0;               ///< (0, 1]
  double min_p = 0.0;               ///< [0, 1)
  double repetition_penalty = 1.0;  ///< > 0; over prompt and output, positive logits divided, negative multiplied
  std::uint64_t seed = 0;

  /// Whether the next token is that of the largest logit, whatever came before.
  bool takes_largest() const { return temperature == 0.0 && repetition_penalty == 1.0; }

  /// Error::bad_argument naming the option and its legal range.
  void validate() const;
};

struct GenerationRequest {
  std::vector<TokenId> prompt;
  std::int64_t max_tokens = 256;  ///< >= 1
  SamplingOptions sampling = {};
  std::vector<std::string> stop = {};  ///< texts that end the output; not part of it
  bool ignore_eos = false;
};

enum class FinishReason : std::uint8_t { stop, length };

struct GenerationResult {
  std::vector<TokenId> output_ids;  ///< without an end-of-sequence token; with the tokens that spell a stop text
  std::string text;                 ///< without the stop text; empty where the model has no tokenizer
  FinishReason finish_reason = FinishReason::length;
  double ttft_ms = 0.0;              ///< from the call to the first token
  double decode_tokens_per_s = 0.0;  ///< (output tokens - 1) / (last - first token's time); 0 for fewer than two
};

}  // namespace qpn8
