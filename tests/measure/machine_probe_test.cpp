#include "measure/machine_probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

TEST(MachineProbe, ReadsAndMultipliesAtAPlausibleSpeed) {
  const auto probe = make_probe(parse_hardware("cpu-portable"), 2);
  for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{4} << 20, std::int64_t{1} << 20}) {
    EXPECT_GT(probe->read_bytes_per_s(bytes), 1e6);
    EXPECT_LT(probe->read_bytes_per_s(bytes), 1e14);
  }
  EXPECT_GT(probe->flop_per_s(), 1e6);
  EXPECT_LT(probe->flop_per_s(), 1e15);
}

TEST(MachineProbe, OtherHardwareIsRefusedByName) {
  test::expect_error(
      Error::unsupported, [] { make_probe(parse_hardware("sm70"), 1); }, testing::StartsWith("sm70: "));
}

TEST(MachineProbe, TheLastLevelCacheHasASize) { EXPECT_GT(last_level_cache_bytes(), 1 << 16); }

}  // namespace
}  // namespace qpn8
