#pragma once

#include <string_view>

namespace qpn8 {

/// The style sheet of the HTML reports, report.css, compiled in.
std::string_view report_style();

}  // namespace qpn8
