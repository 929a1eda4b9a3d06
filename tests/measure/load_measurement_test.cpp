#include "measure/load_measurement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

EngineOptions options(const std::string& qpn8) {
  EngineOptions options;
  options.apply({{"qpn8", qpn8}, {"threads", 2}});
  return options;
}

TEST(MeasureLoad, TellsTimesBytesAndPeakOfAProcessOfItsOwn) {
  const LoadResult dense = measure_load(test::data() / "tiny-qwen3", options("off"));
  EXPECT_GT(dense.weights_seconds, 0);
  EXPECT_GE(dense.seconds, dense.weights_seconds);
  EXPECT_GT(dense.peak_rss_bytes, 1 << 20);
  EXPECT_EQ(dense.threads, 2);
  const LoadResult packed = measure_load(test::data() / "tiny-qwen3", options("on"));
  EXPECT_LT(packed.weight_bytes, dense.weight_bytes);
  EXPECT_EQ(packed.checkpoint_bytes, dense.checkpoint_bytes);
  EXPECT_GT(packed.checkpoint_bytes, dense.weight_bytes) << "norms are in the files too";
}

TEST(MeasureLoad, AnErrorOfTheLoadingIsThrownAsItWasThere) {
  test::expect_error(
      Error::bad_file, [] { measure_load("/nowhere", options("off")); }, testing::HasSubstr("/nowhere"));
  EngineOptions cuda = options("off");
  cuda.device = "cuda";
  test::expect_error(
      Error::missing_capability, [&] { measure_load(test::data() / "tiny-qwen3", cuda); }, testing::HasSubstr("CUDA"));
}

}  // namespace
}  // namespace qpn8
