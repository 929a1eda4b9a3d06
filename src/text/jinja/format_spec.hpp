#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/value.hpp"

namespace qpn8::jinja {

/// How one value is written: what a conversion of a % format or a {} field says, as Python reads it.
struct FormatSpec {
  std::string fill = " ";  ///< one code point
  char align = '\0';       ///< '<', '>', '^', '=' (between sign and digits), or none: by the value's type
  char sign = '-';         ///< '-', '+' or ' '
  bool alternate = false;  ///< 0x, 0o and 0b prefixes
  std::int64_t width = 0;
  char grouping = '\0';  ///< ',' or '_'
  std::optional<std::int64_t> precision;
  char type = '\0';
};

/// The part of a {} field behind the colon: [[fill]align][sign][#][0][width][grouping][.precision][type].
FormatSpec parse_format_spec(std::string_view text);

/// Reads decimal digits at `position`, which moves behind them; TemplateError beyond what a width may be.
std::optional<std::int64_t> read_width(std::string_view text, std::size_t& position);

std::string format_text(Budget& budget, const FormatSpec& spec, std::string_view text);
std::string format_integer(Budget& budget, const FormatSpec& spec, std::int64_t value);
std::string format_real(Budget& budget, const FormatSpec& spec, double value);

/// format(value, spec) for any value.
std::string format_value(Budget& budget, std::string_view spec, const Value& value);

}  // namespace qpn8::jinja
