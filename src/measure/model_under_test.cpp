#include "measure/model_under_test.hpp"

#include <optional>

#include "base/check.hpp"
#include "base/random.hpp"
#include "measure/samples.hpp"

namespace qpn8 {

ModelUnderTest::ModelUnderTest(const std::filesystem::path& folder, const EngineOptions& options,
                               const LoadObserver& observer)
    : loaded_(load_model(FrontEnd(folder, options), observer)),
      runner_(*loaded_.backend, *loaded_.model, *loaded_.cache, loaded_.max_rows) {}

double ModelUnderTest::prefill(std::int64_t tokens) {
  check(tokens >= 1 && tokens < context_length(), "a prompt leaves room in the context");
  Random random(static_cast<std::uint64_t>(tokens));
  ids_.reserve(static_cast<std::size_t>(context_length()));
  ids_.resize(static_cast<std::size_t>(tokens));
  for (TokenId& id : ids_) {
    id = static_cast<TokenId>(random.below(static_cast<std::uint64_t>(loaded_.model->vocab_size())));
  }
  select_kernels(plan().hardware());
  runner_.reset();
  return seconds_of([&] {
    const std::optional<TokenId> token = runner_.extend_greedily(ids_);
    if (!token) runner_.raise_non_finite(ids_);
    next_ = *token;
  });
}

double ModelUnderTest::decode(int steps) {
  check(length() > 0 && length() + steps <= context_length(), "steps fit the context");
  select_kernels(plan().hardware());
  const double seconds = seconds_of([&] {
    for (int step = 0; step < steps; ++step) {
      ids_.push_back(next_);
      const std::optional<TokenId> token = runner_.extend_greedily({&next_, 1});
      if (!token) runner_.raise_non_finite(ids_);
      next_ = *token;
    }
  });
  return seconds / steps;
}

std::int64_t ModelUnderTest::bytes_per_step() const {
  return loaded_.model->weight_bytes_per_token() + loaded_.cache->bytes_read(length() + 1);
}

}  // namespace qpn8
