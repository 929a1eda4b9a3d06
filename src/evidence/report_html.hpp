#pragma once

#include <string>

#include "evidence/ab_result.hpp"

namespace qpn8 {

/// The comparison as one page that needs nothing else: no script, no network; light and dark, wide and narrow.
std::string to_html(const AbResult& result);

}  // namespace qpn8
