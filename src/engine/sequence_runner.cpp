#include "engine/sequence_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
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
      host_logits_(static_cast<std::size_t>(model.vocab_size())) {}

void SequenceRunner::reset() {
  cache_.reset(kSlot);
  length_ = 0;
}

void SequenceRunner::run(std::span<const TokenId> ids, std::int64_t logit_rows, const Tensor& logits) {
  const Batch& batch = buffer_.fill(kSlot, length_, ids);
  model_.forward(batch, cache_, buffer_.last_rows(logit_rows), logits);
  length_ += batch.rows;
}

std::span<float> SequenceRunner::extend(std::span<const TokenId> ids) {
  check(!ids.empty(), "a sequence is extended by a token at least");
  const auto most = static_cast<std::size_t>(buffer_.max_rows());
  for (; ids.size() > most; ids = ids.subspan(most)) run(ids.first(most), 0, last_logits_.tensor.row_range(0, 0));
  run(ids, 1, last_logits_.tensor);
  backend_.read(last_logits_.tensor, std::as_writable_bytes(std::span(host_logits_)));
  return host_logits_;
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
    run(ids.first(count), pass.rows, pass);
    backend_.read(pass, std::as_writable_bytes(logits.first(count * vocabulary)));
    ids = ids.subspan(count);
    logits = logits.subspan(count * vocabulary);
  }
}

void SequenceRunner::raise_non_finite() {
  {
    const FiniteCheck checked(model_);
    model_.forward(buffer_.batch(), cache_, buffer_.last_rows(1), last_logits_.tensor);
  }
  throw Error(Error::check_failed,
              fmt::format("logits: not finite after position {}, though the output of every layer is", length_ - 1));
}

}  // namespace qpn8
