#include "kernels/cpu/probe.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/kernel_cases.hpp"

namespace qpn8::cpu {
namespace {

class Probe : public test::OnEveryIsa {};

INSTANTIATE_TEST_SUITE_P(Isa, Probe, testing::ValuesIn(available_isas()), test::isa_name);

TEST_P(Probe, EveryByteIsReadWhateverTheSizeAndTheTeam) {
  // Changing any one byte must change the checksum.
  for (int threads : {1, 3}) {
    ThreadTeam team(threads);
    std::vector<std::byte> memory(9001);
    const std::uint64_t before = read_all(memory, team);
    for (std::size_t i = 0; i < memory.size(); i += 61) {
      memory[i] = std::byte{1};
      EXPECT_NE(read_all(memory, team), before) << i;
      memory[i] = std::byte{0};
    }
  }
}

TEST_P(Probe, MultiplyAddsAreCountedOverTheWholeTeam) {
  ThreadTeam one(1);
  ThreadTeam three(3);
  float sink = 0;
  const double alone = multiply_add_rounds(100, one, sink);
  EXPECT_GT(alone, 0);
  EXPECT_GT(sink, 0);
  EXPECT_EQ(multiply_add_rounds(100, three, sink), 3 * alone);
  EXPECT_EQ(multiply_add_rounds(200, one, sink), 2 * alone);
}

}  // namespace
}  // namespace qpn8::cpu
