#include "engine/engine.hpp"

#include <utility>

#include "engine/engine_loader.hpp"
#include "engine/generation.hpp"
#include "engine/sampler.hpp"
#include "engine/sequence_runner.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {

class Engine::Impl {
 public:
  Impl(FrontEnd front, const LoadObserver& observer)
      : loaded(load_model(std::move(front), observer)),
        runner(*loaded.backend, *loaded.model, *loaded.cache, loaded.max_rows),
        sampler(static_cast<std::size_t>(loaded.model->vocab_size())) {}

  GenerationContext context() {
    const FrontEnd& front = loaded.front;
    return {.runner = runner,
            .sampler = sampler,
            .tokenizer = front.has_tokenizer() ? &front.tokenizer() : nullptr,
            .vocabulary = loaded.model->vocab_size(),
            .context_length = front.context_length(),
            .end_tokens = front.end_tokens()};
  }

  LoadedModel loaded;
  SequenceRunner runner;
  Sampler sampler;
};

Engine::Engine(const std::filesystem::path& folder, const EngineOptions& options, const LoadObserver& observer)
    : Engine(FrontEnd(folder, options), observer) {}

Engine::Engine(FrontEnd front, const LoadObserver& observer)
    : impl_(std::make_unique<Impl>(std::move(front), observer)) {}

Engine::~Engine() = default;

const FrontEnd& Engine::front_end() const { return impl_->loaded.front; }

const Plan& Engine::plan() const { return impl_->loaded.plan; }

const EngineOptions& Engine::options() const { return front_end().options(); }

bool Engine::has_tokenizer() const { return front_end().has_tokenizer(); }

const Tokenizer& Engine::tokenizer() const { return front_end().tokenizer(); }

std::int64_t Engine::context_length() const { return front_end().context_length(); }

std::int64_t Engine::vocab_size() const { return impl_->loaded.model->vocab_size(); }

std::int64_t Engine::weight_bytes_per_token() const { return impl_->loaded.model->weight_bytes_per_token(); }

std::vector<TokenId> Engine::encode_chat(const nlohmann::ordered_json& variables) const {
  return front_end().encode_chat(variables);
}

std::vector<TokenId> Engine::encode_prompt(std::string_view text) const { return front_end().encode_prompt(text); }

GenerationResult Engine::generate(const GenerationRequest& request,
                                  const std::function<void(std::string_view)>& on_text) {
  select_kernels(plan().hardware());
  return qpn8::generate(impl_->context(), request, on_text);
}

std::vector<float> Engine::logits(std::span<const TokenId> ids, std::int64_t chunk) {
  if (chunk < 1) throw Error(Error::bad_argument, "chunk: must be at least 1");
  require_prompt(ids, front_end().limits());
  std::vector<float> logits(ids.size() * static_cast<std::size_t>(vocab_size()));
  select_kernels(plan().hardware());
  impl_->runner.reset();
  impl_->runner.extend(ids, chunk, logits);
  return logits;
}

}  // namespace qpn8
