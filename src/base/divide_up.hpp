#pragma once

#include <cstdint>

namespace qpn8 {

/// value / by, rounded up; value >= 0, by > 0.
constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

}  // namespace qpn8
