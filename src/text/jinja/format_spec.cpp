#include "text/jinja/format_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "text/jinja/repr.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

constexpr std::int64_t kMaxWidth = 1'000'000;
constexpr std::int64_t kMaxPrecision = 1'000;

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// Pads to the width. `head` is the sign and the prefix, which '=' keeps in front of the fill.
std::string pad(Budget& budget, const FormatSpec& spec, char default_align, std::string_view head,
                std::string_view body) {
  const std::int64_t length = count_code_points(head) + count_code_points(body);
  const std::int64_t missing = std::max<std::int64_t>(spec.width - length, 0);
  const char align = spec.align == '\0' ? default_align : spec.align;
  const std::int64_t before = align == '>' || align == '=' ? missing : align == '^' ? missing / 2 : 0;
  TextBuilder out(budget);
  const auto fill = [&](std::int64_t count) {
    for (; count > 0; --count) out.append(spec.fill);
  };
  if (align == '=') out.append(head);
  fill(before);
  if (align != '=') out.append(head);
  out.append(body);
  fill(missing - before);
  return out.take();
}

std::string group_digits(std::string_view digits, char separator, std::size_t group) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % group == 0) out += separator;
    out += digits[i];
  }
  return out;
}

std::string_view sign_of(const FormatSpec& spec, bool negative) {
  if (negative) return "-";
  return spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
}

std::string real_digits(double magnitude, std::chars_format format, std::int64_t precision) {
  // Fixed notation of the largest double has 309 digits in front of the point.
  std::vector<char> buffer(static_cast<std::size_t>(precision) + 400);
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), magnitude, format, static_cast<int>(precision));
  return {buffer.data(), written.ptr};
}

std::string real_body(const FormatSpec& spec, double magnitude) {
  const std::int64_t precision = spec.precision.value_or(6);
  switch (spec.type) {
    case 'e':
    case 'E':
      return real_digits(magnitude, std::chars_format::scientific, precision);
    case 'f':
    case 'F':
      return real_digits(magnitude, std::chars_format::fixed, precision);
    case '%':
      return real_digits(magnitude * 100, std::chars_format::fixed, precision) + "%";
    case '\0':
      if (!spec.precision) return format_float(magnitude);
      break;
    default:
      break;
  }
  return real_digits(magnitude, std::chars_format::general, std::max<std::int64_t>(precision, 1));
}

void check_precision(const FormatSpec& spec) {
  if (spec.precision && *spec.precision > kMaxPrecision) {
    throw TemplateError(fmt::format("a format's precision is {}, the limit is {}", *spec.precision, kMaxPrecision));
  }
}

}  // namespace

std::optional<std::int64_t> read_width(std::string_view text, std::size_t& position) {
  const std::size_t start = position;
  std::int64_t value = 0;
  while (position < text.size() && text[position] >= '0' && text[position] <= '9') {
    value = value * 10 + (text[position++] - '0');
    if (value > kMaxWidth) throw TemplateError(fmt::format("a format's width is beyond the limit of {}", kMaxWidth));
  }
  if (position == start) return std::nullopt;
  return value;
}

FormatSpec parse_format_spec(std::string_view text) {
  FormatSpec spec;
  std::size_t i = 0;
  const auto at = [&](std::size_t position) { return position < text.size() ? text[position] : '\0'; };
  const std::size_t first_size = text.empty() ? 0 : code_point_size(text[0]);
  if (!text.empty() && is_one_of(at(first_size), "<>^=")) {
    spec.fill = text.substr(0, first_size);
    spec.align = at(first_size);
    i = first_size + 1;
  } else if (!text.empty() && is_one_of(text[0], "<>^=")) {
    spec.align = text[i++];
  }
  if (i < text.size() && is_one_of(at(i), "+- ")) spec.sign = text[i++];
  if (at(i) == '#') {
    spec.alternate = true;
    ++i;
  }
  if (at(i) == '0') {
    ++i;
    if (spec.align == '\0') {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  spec.width = read_width(text, i).value_or(0);
  if (i < text.size() && is_one_of(at(i), ",_")) spec.grouping = text[i++];
  if (at(i) == '.') {
    spec.precision = read_width(text, ++i);
    if (!spec.precision) throw TemplateError("Format specifier missing precision");
  }
  if (i < text.size()) spec.type = text[i++];
  if (i != text.size()) throw TemplateError(fmt::format("Invalid format specifier '{}'", text));
  check_precision(spec);
  return spec;
}

std::string format_text(Budget& budget, const FormatSpec& spec, std::string_view text) {
  if (spec.precision) text = text.substr(0, byte_offset(text, *spec.precision));
  FormatSpec padded = spec;
  if (padded.align == '=') padded.align = '<';
  return pad(budget, padded, '<', "", text);
}

std::string format_integer(Budget& budget, const FormatSpec& spec, std::int64_t value) {
  const auto magnitude = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string head(sign_of(spec, value < 0));
  std::string digits;
  switch (spec.type) {
    case '\0':
    case 'd':
    case 'i':
    case 'u':
    case 'n':
      digits = fmt::format("{}", magnitude);
      break;
    case 'x':
    case 'X':
    case 'o':
    case 'b':
      digits = spec.type == 'x'   ? fmt::format("{:x}", magnitude)
               : spec.type == 'X' ? fmt::format("{:X}", magnitude)
               : spec.type == 'o' ? fmt::format("{:o}", magnitude)
                                  : fmt::format("{:b}", magnitude);
      if (spec.alternate) head += std::string("0") + spec.type;
      break;
    case 'c': {
      if (value < 0 || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
        throw TemplateError("%c arg not in range(0x110000)");
      }
      std::string character;
      append_code_point(character, static_cast<CodePoint>(value));
      return format_text(budget, spec, character);
    }
    default:
      return format_real(budget, spec, static_cast<double>(value));
  }
  if (spec.grouping != '\0') digits = group_digits(digits, spec.grouping, is_one_of(spec.type, "xXob") ? 4 : 3);
  return pad(budget, spec, '>', head, digits);
}

std::string format_real(Budget& budget, const FormatSpec& spec, double value) {
  if (!is_one_of(spec.type, std::string_view("eEfFgGn%\0", 9))) {
    throw TemplateError(fmt::format("Unknown format code '{}' for object of type 'float'", spec.type));
  }
  check_precision(spec);
  const bool negative = std::signbit(value) && !std::isnan(value);
  std::string body;
  if (std::isfinite(value)) {
    body = real_body(spec, std::abs(value));
  } else {
    body = std::isnan(value) ? "nan" : "inf";
    if (spec.type == '%') body += '%';
  }
  if (is_one_of(spec.type, "EFG")) {
    std::transform(body.begin(), body.end(), body.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
  }
  if (spec.grouping != '\0' && std::isfinite(value)) {
    const std::size_t end = std::min(body.find_first_not_of("0123456789"), body.size());
    body = group_digits(std::string_view{body}.substr(0, end), spec.grouping, 3) + body.substr(end);
  }
  return pad(budget, spec, '>', sign_of(spec, negative), body);
}

std::string format_value(Budget& budget, std::string_view spec, const Value& value) {
  if (spec.empty()) return to_str(budget, value);
  if (const Text* text = value.text()) {
    const FormatSpec parsed = parse_format_spec(spec);
    if (parsed.type != '\0' && parsed.type != 's') {
      throw TemplateError(fmt::format("Unknown format code '{}' for object of type 'str'", parsed.type));
    }
    return format_text(budget, parsed, text->bytes);
  }
  if (const auto integer = value.integer()) return format_integer(budget, parse_format_spec(spec), *integer);
  if (const auto number = value.number()) return format_real(budget, parse_format_spec(spec), *number);
  throw TemplateError(fmt::format("unsupported format string passed to {}.__format__", value.type_name()));
}

}  // namespace qpn8::jinja
