#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace qpn8 {

/// The runs of an item: A, B, and A once more under its own name, which shows what differs between equal arms.
enum class ArmName : std::uint8_t { a, b, aa };

inline constexpr std::array<ArmName, 3> kArmNames = {ArmName::a, ArmName::b, ArmName::aa};

std::string_view to_string(ArmName name);
std::optional<ArmName> parse_arm_name(std::string_view text);

/// One item under one seed, with the order its arms run in.
struct ScheduledItem {
  std::uint64_t seed = 0;    ///< one of the comparison's seeds
  std::size_t position = 0;  ///< of the item in the selection
  std::array<ArmName, 3> arms{};
};

/// Every item under every seed. Pairs of items run  A/A A B | B A A/A : A and B meet as A B B A, so that neither gains
/// from a machine that warms up or slows down, and either follows its own weights as often as the other's. A/A runs
/// outside that group, at both ends, so that it costs the A B B A nothing and is mirrored like the others.
std::vector<ScheduledItem> interleave(std::size_t items, const std::vector<std::uint64_t>& seeds);

}  // namespace qpn8
