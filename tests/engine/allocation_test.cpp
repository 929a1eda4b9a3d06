// What a decode step takes from the allocator, whose every call this executable counts.

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "engine/engine_loader.hpp"
#include "engine/sampler.hpp"
#include "engine/sequence_runner.hpp"
#include "support/allocation_count.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

/// Pages that the process has mapped: large buffers come from there and not from operator new.
long mapped_pages() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

class DecodeStep : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Routes, DecodeStep, testing::Values("off", "auto"),
                         [](const auto& route) { return std::string(route.param); });

TEST_P(DecodeStep, AllocatesNothingOnceOneHasBeenMade) {
  EngineOptions options;
  options.threads = 2;
  options.qpn8 = GetParam();
  const LoadedModel loaded = load_model(FrontEnd(test::repository() / "models" / "wordmath-11m", options), {});
  SequenceRunner runner(*loaded.backend, *loaded.model, *loaded.cache, loaded.max_rows);
  Sampler sampler(static_cast<std::size_t>(loaded.model->vocab_size()));
  const std::vector<TokenId> prompt = {5, 6, 7, 8, 9};
  const SamplingOptions sampling = {.temperature = 1.0, .top_k = 50, .top_p = 0.9, .min_p = 0.01};
  sampler.start(sampling, prompt);
  TokenId next = sampler.next(runner.extend(prompt)).value();
  const auto step = [&] { next = sampler.next(runner.extend(std::span(&next, 1))).value(); };
  step();
  mapped_pages();  // a stream's own first use
  const long pages = mapped_pages();
  const long before = test::allocation_count();
  // Past a panel of keys and a split of attention.
  for (int i = 0; i < 300; ++i) step();
  EXPECT_EQ(test::allocation_count(), before);
  EXPECT_EQ(mapped_pages(), pages);
}

}  // namespace
}  // namespace qpn8
