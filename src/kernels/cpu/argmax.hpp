#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace qpn8::cpu {

/// Index of the largest value, ties to the lower index; nothing if a value is not finite or there is none.
/// One pass and a search, both over integers, which a compiler may vectorise where float comparisons may not.
std::optional<std::size_t> argmax(std::span<const float> values);

}  // namespace qpn8::cpu
