#pragma once

#include <fmt/format.h>

#include <string>

namespace qpn8 {

/// "+1.25", "-0.40"; what rounds to zero is "+0.00", for nobody can tell a fall of 0.00 from a rise of it.
inline std::string signed_text(double value) {
  std::string text = fmt::format("{:+.2f}", value);
  return text == "-0.00" ? "+0.00" : text;
}

}  // namespace qpn8
