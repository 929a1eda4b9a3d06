#include "engine/engine.hpp"

#include <fmt/format.h>

#include <string>

#include "engine/engine_loader.hpp"
#include "engine/generation.hpp"
#include "engine/sampler.hpp"
#include "engine/sequence_runner.hpp"
#include "qpn8/error.hpp"
#include "text/chat_template.hpp"

namespace qpn8 {

class Engine::Impl {
 public:
  Impl(const std::filesystem::path& folder_, const EngineOptions& options_, const LoadObserver& observer)
      : folder(folder_),
        options(options_),
        loaded(load_model(folder_, options_, observer)),
        runner(*loaded.backend, *loaded.model, *loaded.cache, loaded.max_rows),
        sampler(static_cast<std::size_t>(loaded.model->vocab_size())) {}

  GenerationContext context() {
    return {.runner = runner,
            .sampler = sampler,
            .tokenizer = loaded.tokenizer ? &*loaded.tokenizer : nullptr,
            .vocabulary = loaded.model->vocab_size(),
            .context_length = loaded.context_length,
            .end_tokens = loaded.end_tokens};
  }

  std::filesystem::path folder;
  EngineOptions options;
  LoadedModel loaded;
  SequenceRunner runner;
  Sampler sampler;
};

Engine::Engine(const std::filesystem::path& folder, const EngineOptions& options, const LoadObserver& observer)
    : impl_(std::make_unique<Impl>(folder, options, observer)) {}

Engine::~Engine() = default;

const Plan& Engine::plan() const { return impl_->loaded.plan; }

const EngineOptions& Engine::options() const { return impl_->options; }

bool Engine::has_tokenizer() const { return impl_->loaded.tokenizer.has_value(); }

const Tokenizer& Engine::tokenizer() const {
  if (!has_tokenizer()) {
    throw Error(Error::bad_file,
                fmt::format("{}: no such file; text needs a tokenizer", (impl_->folder / "tokenizer.json").string()));
  }
  return *impl_->loaded.tokenizer;
}

std::int64_t Engine::context_length() const { return impl_->loaded.context_length; }

std::int64_t Engine::vocab_size() const { return impl_->loaded.model->vocab_size(); }

std::int64_t Engine::weight_bytes_per_token() const { return impl_->loaded.model->weight_bytes_per_token(); }

std::vector<TokenId> Engine::encode_chat(const nlohmann::ordered_json& variables) const {
  const std::optional<ChatTemplate> chat = load_chat_template(impl_->folder);
  if (!chat) {
    throw Error(Error::bad_file,
                fmt::format("{}: no chat template in chat_template.jinja or tokenizer_config.json; the model takes a "
                            "plain prompt",
                            impl_->folder.string()));
  }
  nlohmann::ordered_json seen = load_template_tokens(impl_->folder);
  for (const auto& [key, value] : variables.items()) seen[key] = value;
  return encode_prompt(chat->render(seen));
}

std::vector<TokenId> Engine::encode_prompt(std::string_view text) const {
  return tokenizer().encode(text, /*special=*/true);
}

GenerationResult Engine::generate(const GenerationRequest& request,
                                  const std::function<void(std::string_view)>& on_text) {
  select_kernels(plan().hardware());
  return qpn8::generate(impl_->context(), request, on_text);
}

std::vector<float> Engine::logits(std::span<const TokenId> ids, std::int64_t chunk) {
  if (chunk < 1) throw Error(Error::bad_argument, "chunk: must be at least 1");
  require_prompt(ids, vocab_size(), context_length());
  std::vector<float> logits(ids.size() * static_cast<std::size_t>(vocab_size()));
  select_kernels(plan().hardware());
  impl_->runner.reset();
  impl_->runner.extend(ids, chunk, logits);
  return logits;
}

}  // namespace qpn8
