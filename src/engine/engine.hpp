#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine_options.hpp"
#include "engine/generation_request.hpp"
#include "engine/load_observer.hpp"
#include "route/plan.hpp"
#include "text/tokenizer.hpp"

namespace qpn8 {

/// A loaded model with its tokenizer, ready to generate.
///
/// One call at a time, and that over all engines of a process if they differ in cpu_isa: which instruction set the
/// kernels use is a setting of the process (cpu::use_isa), which each engine makes its own when it loads and whenever
/// it computes. Engines that take turns may differ; engines on threads of their own must not.
class Engine {
 public:
  /// Loads a Hugging Face folder: config, checkpoint headers, plan, tokenizer, and then the weights, so that what can
  /// fail early does. Errors as each part documents them; Error::missing_capability if the device or the memory is not
  /// there, Error::bad_argument if the options ask for more than the model or this build has.
  explicit Engine(const std::filesystem::path& folder, const EngineOptions& options = {},
                  const LoadObserver& observer = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Plan& plan() const;
  const EngineOptions& options() const;
  const Tokenizer& tokenizer() const;  ///< Error::bad_file if the folder has none
  bool has_tokenizer() const;
  std::int64_t context_length() const;
  std::int64_t vocab_size() const;

  /// Bytes of weights that one decode step of one sequence reads.
  std::int64_t weight_bytes_per_token() const;

  /// The prompt's ids for a chat: the folder's template, tokenized with exactly one BOS. `variables` is what the
  /// template sees (messages, tools, ...) beside the special tokens, which it may override. Error::bad_value with the
  /// template's message, or Error::bad_file if there is no template.
  std::vector<TokenId> encode_chat(const nlohmann::ordered_json& variables) const;

  /// The prompt's ids for plain text, with the tokenizer's special tokens.
  std::vector<TokenId> encode_prompt(std::string_view text) const;

  /// Runs one request. `on_text` receives the text as it becomes certain. Error::bad_argument if the prompt is empty or
  /// does not leave room for a token in the context, or an id is outside the vocabulary; max_tokens is cut to the
  /// context, which finishes with `length`. Logits that are not finite are Error::check_failed naming the layer.
  GenerationResult generate(const GenerationRequest& request,
                            const std::function<void(std::string_view)>& on_text = nullptr);

  /// Logits (F32 [ids, vocabulary], row-major) of every position of `ids` run from an empty cache in passes of at most
  /// `chunk` tokens (and at most prefill_chunk); for tests and audits. Error::bad_argument as generate, or if chunk
  /// < 1.
  std::vector<float> logits(std::span<const TokenId> ids, std::int64_t chunk);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qpn8
