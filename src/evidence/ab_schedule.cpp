#include "evidence/ab_schedule.hpp"

namespace qpn8 {

std::string_view to_string(ArmName name) {
  static constexpr std::array<std::string_view, 3> kTexts = {"a", "b", "aa"};
  return kTexts[static_cast<std::size_t>(name)];
}

std::optional<ArmName> parse_arm_name(std::string_view text) {
  for (ArmName name : kArmNames) {
    if (to_string(name) == text) return name;
  }
  return std::nullopt;
}

std::vector<ScheduledItem> interleave(std::size_t items, const std::vector<std::uint64_t>& seeds) {
  static constexpr std::array<ArmName, 3> kForth = {ArmName::aa, ArmName::a, ArmName::b};
  static constexpr std::array<ArmName, 3> kBack = {ArmName::b, ArmName::a, ArmName::aa};
  std::vector<ScheduledItem> schedule;
  schedule.reserve(items * seeds.size());
  for (std::uint64_t seed : seeds) {
    for (std::size_t position = 0; position < items; ++position) {
      schedule.push_back({seed, position, schedule.size() % 2 == 0 ? kForth : kBack});
    }
  }
  return schedule;
}

}  // namespace qpn8
