#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "text/jinja/filters.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/unicode.hpp"

// Filters that give numbers.

namespace qpn8::jinja {
namespace {

Value random(Runtime& /*runtime*/, const Value& /*input*/, const Arguments& /*arguments*/) {
  throw TemplateError("the filter 'random' is not supported: a chat template's output must not depend on chance");
}

Value absolute(Runtime& /*runtime*/, const Value& input, const Arguments& arguments) {
  refuse_arguments("filter 'abs'", arguments);
  require_defined(input);
  if (const auto integer = input.integer()) return *integer < 0 ? apply(UnaryOperator::minus, input) : Value(*integer);
  if (const auto number = input.number()) return std::abs(*number);
  throw TemplateError(fmt::format("bad operand type for abs(): '{}'", input.type_name()));
}

// Digits without the underscores that Python admits between them; nothing if one is out of place.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto is_digit = [&](std::size_t at) {
      return at < text.size() && ((text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'z') ||
                                  (text[at] >= 'A' && text[at] <= 'Z'));
    };
    if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) return std::nullopt;
  }
  return out;
}

// What Python's int(text, base) reads; nothing where it raises ValueError.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  text = strip(text);
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    const char prefix = static_cast<char>(text[1] | 0x20);
    const int prefixed = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    if (prefixed != 0 && (base == 0 || base == prefixed)) {
      base = prefixed;
      text.remove_prefix(text[2] == '_' ? 3 : 2);
    }
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty()) return std::nullopt;
  // Without a base, a number does not start with zeros.
  if (base == 0 && (*digits)[0] == '0' && digits->find_first_not_of('0') != std::string::npos) return std::nullopt;
  const std::string signed_digits = (negative ? "-" : "") + *digits;
  if (!negative && (*digits)[0] == '-') return std::nullopt;
  std::int64_t value = 0;
  const char* end = signed_digits.data() + signed_digits.size();
  const auto [last, error] = std::from_chars(signed_digits.data(), end, value, base == 0 ? 10 : static_cast<int>(base));
  if (error == std::errc::result_out_of_range && last == end) {
    throw TemplateError("the integer does not fit into 64 bits");
  }
  if (error != std::errc() || last != end) return std::nullopt;
  return value;
}

// What Python's float(text) reads.
std::optional<double> parse_real(std::string_view text) {
  const auto cleaned = without_underscores(strip(text));
  if (!cleaned) return std::nullopt;
  std::string_view digits = *cleaned;
  const bool negative = !digits.empty() && digits[0] == '-';
  if (negative || (!digits.empty() && digits[0] == '+')) digits.remove_prefix(1);
  if (digits.empty() || digits[0] == '-' || digits.find('(') != std::string_view::npos) return std::nullopt;
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [last, error] = std::from_chars(digits.data(), end, value);
  if (last != end) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    const std::size_t exponent = digits.find_first_of("eE");
    const bool tiny = exponent != std::string_view::npos && digits.substr(exponent + 1, 1) == "-";
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

Value integer(Runtime& /*runtime*/, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'int'", arguments, {"default", "base"});
  Value otherwise = bound.has(0) ? bound[0] : Value(0);
  require_defined(input);
  if (const auto value = input.integer()) return *value;
  if (input.is_float()) return std::isnan(*input.number()) ? otherwise : Value(truncate_to_integer(*input.number()));
  if (input.text() == nullptr) return otherwise;
  if (const auto value = parse_integer(input.text()->bytes, bound.integer(1, 10))) return *value;
  const auto real = parse_real(input.text()->bytes);
  return real && std::isfinite(*real) ? Value(truncate_to_integer(*real)) : otherwise;
}

Value real(Runtime& /*runtime*/, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'float'", arguments, {"default"});
  Value otherwise = bound.has(0) ? bound[0] : Value(0.0);
  require_defined(input);
  if (const auto value = input.number()) return *value;
  if (input.text() == nullptr) return otherwise;
  const auto value = parse_real(input.text()->bytes);
  return value ? Value(*value) : otherwise;
}

// To that many decimals, ties to even as Python rounds; the decimal digits of the double decide, not a product.
double round_to(double value, std::int64_t decimals) {
  constexpr std::int64_t kMaxDecimals = 323;
  if (!std::isfinite(value) || decimals > kMaxDecimals) return value;
  if (decimals < -kMaxDecimals) return std::copysign(0.0, value);
  if (decimals < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-decimals));
    return std::nearbyint(value / scale) * scale;
  }
  std::array<char, 700> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed,
                                     static_cast<int>(decimals));
  double rounded = 0;
  std::from_chars(buffer.data(), written.ptr, rounded);
  return rounded;
}

std::int64_t round_integer(std::int64_t value, std::int64_t decimals) {
  if (decimals >= 0) return value;
  if (decimals < -18) return 0;
  std::int64_t scale = 1;
  for (std::int64_t i = decimals; i < 0; ++i) scale *= 10;
  const std::int64_t rest = (value % scale + scale) % scale;
  const std::int64_t below = value - rest;
  const bool up = rest * 2 > scale || (rest * 2 == scale && (below / scale) % 2 != 0);
  return up ? below + scale : below;
}

Value round(Runtime& /*runtime*/, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'round'", arguments, {"precision", "method"});
  const std::int64_t decimals = bound.integer(0, 0);
  const std::string_view method = bound.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor") {
    throw TemplateError("method must be common, ceil or floor");
  }
  require_defined(input);
  if (!input.number()) {
    throw TemplateError(fmt::format("type {} doesn't define __round__ method", input.type_name()));
  }
  if (method == "common") {
    if (input.integer()) return round_integer(*input.integer(), decimals);
    return round_to(*input.number(), decimals);
  }
  const double scale = std::pow(10.0, static_cast<double>(decimals));
  const double scaled = *input.number() * scale;
  if (!std::isfinite(scaled) || scale == 0) throw TemplateError("the number cannot be rounded to that precision");
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
}

constexpr std::array<NamedFilter, 5> kNumberFilters = {
    {{"abs", absolute}, {"float", real}, {"int", integer}, {"random", random}, {"round", round}}};

}  // namespace

FilterFunction find_number_filter(std::string_view name) { return find_in(kNumberFilters, name); }

}  // namespace qpn8::jinja
