#pragma once

#include <string>
#include <string_view>

namespace qpn8 {

/// Text for an element or a quoted attribute. Characters that a page must not hold (NUL and other controls) are shown
/// as their Unicode pictures; line breaks and tabs stay.
std::string html_text(std::string_view text);

}  // namespace qpn8
