#pragma once

#include <string>

#include "evidence/ab_result.hpp"

namespace qpn8 {

/// The comparison for a terminal: a table of the arms, what differs, the verdict with its reasons.
std::string to_text(const AbResult& result);

}  // namespace qpn8
