#include "kernels/cpu/isa.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qpn8/error.hpp"

namespace qpn8::cpu {
namespace {

TEST(Isa, NamesRoundTripAndOthersAreRefusedWithTheLegalOnes) {
  for (const Isa isa : {Isa::avx512, Isa::avx2, Isa::neon, Isa::portable}) {
    EXPECT_EQ(parse_isa(to_string(isa)), isa);
  }
  EXPECT_THAT(
      [] { parse_isa("sse9"); },
      testing::ThrowsMessage<Error>("cpu_isa: \"sse9\" is no instruction set; legal: avx512, avx2, neon, portable"));
}

TEST(Isa, TheBestOfTheMachineIsUsedUntilAnotherIsForced) {
  const std::vector<Isa> available = available_isas();
  ASSERT_FALSE(available.empty());
  EXPECT_EQ(current_isa(), available.front());
  for (const Isa isa : available) {
    use_isa(isa);
    EXPECT_EQ(current_isa(), isa);
    EXPECT_EQ(available_isas(), available);
  }
  use_isa(std::nullopt);
  EXPECT_EQ(current_isa(), available.front());
}

TEST(Isa, OneThatTheMachineLacksIsAMissingCapability) {
  for (const Isa isa : {Isa::avx512, Isa::avx2, Isa::neon, Isa::portable}) {
    const std::vector<Isa> available = available_isas();
    if (std::find(available.begin(), available.end(), isa) != available.end()) continue;
    try {
      use_isa(isa);
      ADD_FAILURE() << "no error for " << to_string(isa);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::missing_capability);
      EXPECT_THAT(error.what(), testing::HasSubstr("this machine has no " + std::string(to_string(isa))));
    }
    EXPECT_EQ(current_isa(), available.front());
  }
}

}  // namespace
}  // namespace qpn8::cpu
