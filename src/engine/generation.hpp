#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/generation_request.hpp"
#include "engine/sampler.hpp"
#include "engine/sequence_runner.hpp"
#include "text/tokenizer.hpp"

namespace qpn8 {

using TextSink = std::function<void(std::string_view)>;

/// What a request is run with.
struct GenerationContext {
  SequenceRunner& runner;
  Sampler& sampler;
  const Tokenizer* tokenizer = nullptr;  ///< none: ids only, and no stop texts
  std::int64_t vocabulary = 0;
  std::int64_t context_length = 0;
  std::span<const TokenId> end_tokens;  ///< each ends the output
};

/// The loop of Engine::generate, which documents it.
GenerationResult generate(const GenerationContext& context, const GenerationRequest& request, const TextSink& on_text);

}  // namespace qpn8
