#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace qpn8 {

/// How messages call the parts of a request: as the library does, or as a command line does.
struct RequestNames {
  std::string prompt = "prompt";
  bool flags = false;  ///< "--top-p" instead of "top_p"

  std::string of(std::string_view option) const;
};

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
  void validate(const RequestNames& names = {}) const;
};

struct GenerationRequest {
  std::vector<TokenId> prompt = {};
  std::int64_t max_tokens = 256;  ///< >= 1
  SamplingOptions sampling = {};
  std::vector<std::string> stop = {};  ///< texts that end the output; not part of it
  bool ignore_eos = false;

  /// The same for all that can be said of a request without a model: everything but the prompt.
  void validate(const RequestNames& names = {}) const;
};

/// What a model sets a request.
struct RequestLimits {
  std::int64_t vocabulary = 0;
  std::int64_t context_length = 0;  ///< of prompt and output together
  bool has_tokenizer = false;
};

/// Error::bad_argument if there are no ids, more than the context holds, or one outside the vocabulary.
void require_prompt(std::span<const TokenId> ids, const RequestLimits& limits, const RequestNames& names = {});

/// The same, and for a request that is invalid in itself, leaves no room for a token of output, or has stop texts where
/// no tokenizer is.
void require_valid(const GenerationRequest& request, const RequestLimits& limits, const RequestNames& names = {});

enum class FinishReason : std::uint8_t { stop, length };

struct GenerationResult {
  std::vector<TokenId> output_ids;  ///< without an end-of-sequence token; with the tokens that spell a stop text
  std::string text;                 ///< without the stop text; empty where the model has no tokenizer
  FinishReason finish_reason = FinishReason::length;
  double ttft_ms = 0.0;              ///< from the call to the first token
  double decode_tokens_per_s = 0.0;  ///< (output tokens - 1) / (last - first token's time); 0 for fewer than two
};

}  // namespace qpn8
