#include "engine/sequence_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>

#include "base/check.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

constexpr int kSlot = 0;

/// Has a model check its layers' outputs for as long as the scope lives.
class FiniteCheck {
 public:
  explicit FiniteCheck(Model& model) : model_(model) { model_.check_finite(true); }
  ~FiniteCheck() { model_.check_finite(false); }
  FiniteCheck(const FiniteCheck&) = delete;
  FiniteCheck& operator=(const FiniteCheck&) = delete;

 private:
  Model& model_;
};

}  // namespace

SequenceRunner::SequenceRunner(Backend& backend, Model& model, Cache& cache, std::int64_t max_rows)
    : backend_(backend),
      model_(model),
      cache_(cache),
      buffer_(backend, max_rows),
      last_logits_(backend.allocate(DType::f32, 1, model.vocab_size())),
      chosen_(backend.allocate(DType::i32, 1, 1)),
      host_logits_(static_cast<std::size_t>(model.vocab_size())) {}

void SequenceRunner::reset() {
  cache_.reset(kSlot);
  length_ = 0;
}

void SequenceRunner::run(std::span<const TokenId> ids, Variant variant, const Tensor& logits) {
  const Batch& batch = buffer_.fill(kSlot, length_, ids);
  const Tensor rows = buffer_.last_rows(logits.rows);
  const auto pass = [&] {
    model_.forward(batch, cache_, rows, logits);
    if (variant == chosen_token) backend_.argmax(logits, chosen_.tensor);
  };
  if (variant == all_logits) {
    pass();  // they go to memory that the next call has elsewhere
  } else {
    backend_.run_step(batch, variant, std::ref(pass));  // by reference: a copy would be on the heap
  }
  length_ += batch.rows;
}

void SequenceRunner::run_to_last(std::span<const TokenId> ids, Variant variant) {
  check(!ids.empty(), "a sequence is extended by a token at least");
  const auto most = static_cast<std::size_t>(buffer_.max_rows());
  for (; ids.size() > most; ids = ids.subspan(most)) {
    run(ids.first(most), no_logits, last_logits_.tensor.row_range(0, 0));
  }
  run(ids, variant, last_logits_.tensor);
}

std::span<float> SequenceRunner::extend(std::span<const TokenId> ids) {
  run_to_last(ids, last_logits);
  backend_.read(last_logits_.tensor, std::as_writable_bytes(std::span(host_logits_)));
  return host_logits_;
}

std::optional<TokenId> SequenceRunner::extend_greedily(std::span<const TokenId> ids) {
  run_to_last(ids, chosen_token);
  TokenId token = -1;
  backend_.read(chosen_.tensor, std::as_writable_bytes(std::span(&token, 1)));
  if (token < 0) return std::nullopt;
  return token;
}

void SequenceRunner::extend(std::span<const TokenId> ids, std::int64_t chunk, std::span<float> logits) {
  const auto most = static_cast<std::size_t>(std::min(chunk, buffer_.max_rows()));
  const std::size_t vocabulary = host_logits_.size();
  check(most > 0 && logits.size() == ids.size() * vocabulary, "there is room for the logits of every token");
  const OwnedTensor rows = backend_.allocate(DType::f32, static_cast<std::int64_t>(std::min(most, ids.size())),
                                             static_cast<std::int64_t>(vocabulary));
  while (!ids.empty()) {
    const std::size_t count = std::min(most, ids.size());
    const Tensor pass = rows.tensor.row_range(0, static_cast<std::int64_t>(count));
    run(ids.first(count), all_logits, pass);
    backend_.read(pass, std::as_writable_bytes(logits.first(count * vocabulary)));
    ids = ids.subspan(count);
    logits = logits.subspan(count * vocabulary);
  }
}

void SequenceRunner::raise_non_finite(std::span<const TokenId> ids) {
  const std::int64_t position = length_ - 1;
  {
    const FiniteCheck checked(model_);
    reset();
    extend(ids);
  }
  throw Error(
      Error::check_failed,
      fmt::format("logits: not finite at position {}, though a second run over the same tokens gave no layer an "
                  "output that is not finite",
                  position));
}

}  // namespace qpn8
