#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "qpn8/error.hpp"
#include "qpn8/linear.hpp"

namespace qpn8 {
namespace {

TEST(Workspace, HoldsSixteenMebibytesUnlessToldOtherwise) {
  EXPECT_EQ(Workspace().capacity(), std::size_t{16} << 20);
  EXPECT_EQ(Workspace(100).capacity(), 100U);
}

TEST(Workspace, ClaimsAreAlignedAndUpToTheCapacity) {
  Workspace workspace(1000);
  const std::span<std::byte> memory = workspace.claim(1000);
  EXPECT_EQ(memory.size(), 1000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0U);
  EXPECT_EQ(workspace.claim(10).data(), memory.data());
  EXPECT_EQ(workspace.claim(0).size(), 0U);
}

TEST(Workspace, MoreThanTheCapacityIsRefusedNamingBothNumbers) {
  Workspace workspace(1000);
  EXPECT_THAT([&] { workspace.claim(1001); },
              testing::ThrowsMessage<Error>("workspace: holds 1000 bytes, but this product needs at least 1001"));
}

TEST(Workspace, MovesWithItsMemory) {
  Workspace from(1000);
  const std::byte* memory = from.claim(1).data();
  Workspace to(std::move(from));
  EXPECT_EQ(to.claim(1).data(), memory);
  Workspace other(10);
  other = std::move(to);
  EXPECT_EQ(other.claim(1).data(), memory);
  EXPECT_EQ(other.capacity(), 1000U);
}

}  // namespace
}  // namespace qpn8
