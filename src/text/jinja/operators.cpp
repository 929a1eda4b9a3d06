#include "text/jinja/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "text/jinja/html.hpp"
#include "text/jinja/object.hpp"
#include "text/jinja/percent_format.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

constexpr std::array<std::string_view, 7> kBinarySymbols = {"+", "-", "*", "/", "//", "%", "** or pow()"};
constexpr std::array<std::string_view, 8> kCompareSymbols = {"==", "!=", "<", "<=", ">", ">=", "in", "not in"};

std::string_view symbol(BinaryOperator op) { return kBinarySymbols[static_cast<std::size_t>(op)]; }

[[noreturn]] void fail_overflow() { throw TemplateError("the integer result does not fit into 64 bits"); }

[[noreturn]] void fail_operands(BinaryOperator op, const Value& left, const Value& right) {
  throw TemplateError(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), left.type_name(),
                                  right.type_name()));
}

Value concatenate_text(Budget& budget, const Text& left, const Text& right) {
  const bool markup = left.markup || right.markup;
  TextBuilder out(budget);
  // Markup takes other text in as text, not as markup.
  out.append(markup && !left.markup ? escape_html(budget, left.bytes) : left.bytes);
  out.append(markup && !right.markup ? escape_html(budget, right.bytes) : right.bytes);
  return make_text(std::move(out), markup);
}

Value add_other(Budget& budget, const Value& left, const Value& right) {
  if (left.text() != nullptr && right.text() != nullptr) return concatenate_text(budget, *left.text(), *right.text());
  const Sequence* a = left.sequence();
  const Sequence* b = right.sequence();
  if (a != nullptr && b != nullptr && ((a->is_list() && b->is_list()) || (a->is_tuple() && b->is_tuple()))) {
    budget.work(static_cast<std::int64_t>(a->items.size() + b->items.size()));
    std::vector<Value> items = a->items;
    items.insert(items.end(), b->items.begin(), b->items.end());
    return make_sequence(budget, a->is_list() ? SequenceKind::list : SequenceKind::tuple, std::move(items));
  }
  if (left.text() != nullptr || (a != nullptr && (a->is_list() || a->is_tuple()))) {
    throw TemplateError(
        fmt::format("can only concatenate {0} (not \"{1}\") to {0}", left.type_name(), right.type_name()));
  }
  fail_operands(BinaryOperator::add, left, right);
}

Value repeat(Budget& budget, const Value& repeated, std::int64_t count) {
  count = std::max<std::int64_t>(count, 0);
  if (const Text* text = repeated.text()) {
    if (text->bytes.empty()) count = 0;
    budget.check_text_size(count);
    const std::int64_t bytes = count * static_cast<std::int64_t>(text->bytes.size());
    budget.check_text_size(bytes);
    const Charge building(budget, bytes);
    std::string out;
    out.reserve(static_cast<std::size_t>(bytes));
    for (; count > 0; --count) out += text->bytes;
    return make_text(budget, std::move(out), text->markup);
  }
  const Sequence& sequence = *repeated.sequence();
  if (sequence.items.empty()) count = 0;
  std::vector<Value> items;
  for (; count > 0; --count) {
    // The memory is asked for ahead of each round, so that a huge count ends in an error and not in an allocation.
    budget.work(static_cast<std::int64_t>(sequence.items.size()));
    const Charge growth(budget, static_cast<std::int64_t>((items.size() + sequence.items.size()) * sizeof(Value)));
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return make_sequence(budget, sequence.is_list() ? SequenceKind::list : SequenceKind::tuple, std::move(items));
}

bool is_repeatable(const Value& value) {
  const Sequence* sequence = value.sequence();
  return value.text() != nullptr || (sequence != nullptr && (sequence->is_list() || sequence->is_tuple()));
}

Value multiply_other(Budget& budget, const Value& left, const Value& right) {
  if (is_repeatable(left) && right.integer()) return repeat(budget, left, *right.integer());
  if (is_repeatable(right) && left.integer()) return repeat(budget, right, *left.integer());
  if (is_repeatable(left) || is_repeatable(right)) {
    const Value& other = is_repeatable(left) ? right : left;
    throw TemplateError(fmt::format("can't multiply sequence by non-int of type '{}'", other.type_name()));
  }
  fail_operands(BinaryOperator::multiply, left, right);
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == -1) {
    std::int64_t negated = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, a, &negated)) fail_overflow();
    return negated;
  }
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) throw TemplateError("0.0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
  return result;
}

Value apply_integers(BinaryOperator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOperator::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOperator::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOperator::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOperator::divide:
      if (b == 0) throw TemplateError("division by zero");
      return static_cast<double>(a) / static_cast<double>(b);
    case BinaryOperator::floor_divide:
      if (b == 0) throw TemplateError("integer division or modulo by zero");
      return floor_divide(a, b);
    case BinaryOperator::modulo:
      if (b == 0) throw TemplateError("integer modulo by zero");
      return floor_modulo(a, b);
    case BinaryOperator::power:
      return integer_power(a, b);
  }
  if (overflow) fail_overflow();
  return result;
}

double float_modulo(double a, double b) {
  if (b == 0) throw TemplateError("float modulo");
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double float_floor_divide(double a, double b) {
  if (b == 0) throw TemplateError("float floor division by zero");
  const double rest = float_modulo(a, b);
  const double quotient = (a - rest) / b;
  // The quotient is an integer but for rounding.
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

double float_power(double a, double b) {
  if (a == 0 && b < 0) throw TemplateError("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && std::floor(b) != b) {
    throw TemplateError("a negative number to a fractional power is not real");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) throw TemplateError("the float result is too large");
  return result;
}

Value apply_floats(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::add:
      return a + b;
    case BinaryOperator::subtract:
      return a - b;
    case BinaryOperator::multiply:
      return a * b;
    case BinaryOperator::divide:
      if (b == 0) throw TemplateError("float division by zero");
      return a / b;
    case BinaryOperator::floor_divide:
      return float_floor_divide(a, b);
    case BinaryOperator::modulo:
      return float_modulo(a, b);
    case BinaryOperator::power:
      return float_power(a, b);
  }
  return a;
}

// -1, 0 or 1, exact for any mix of ints and floats; 2 where one is NaN.
int order_numbers(const Value& left, const Value& right) {
  if (left.integer() && right.integer()) {
    return *left.integer() < *right.integer() ? -1 : static_cast<int>(*left.integer() > *right.integer());
  }
  const auto wide = [](const Value& v) -> long double {
    return v.integer() ? static_cast<long double>(*v.integer()) : static_cast<long double>(*v.number());
  };
  const long double a = wide(left);
  const long double b = wide(right);
  if (std::isnan(a) || std::isnan(b)) return 2;
  return a < b ? -1 : static_cast<int>(a > b);
}

bool equal_items(Budget& budget, const std::vector<Value>& left, const std::vector<Value>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](const Value& a, const Value& b) { return a.same_as(b) || equals(budget, a, b); });
}

bool equal_dicts(Budget& budget, const Dict& left, const Dict& right) {
  if (left.entries().size() != right.entries().size()) return false;
  return std::all_of(left.entries().begin(), left.entries().end(), [&](const Dict::Entry& entry) {
    const Value* other = right.find(budget, entry.key);
    return other != nullptr && (entry.value.same_as(*other) || equals(budget, entry.value, *other));
  });
}

bool are_alike(const Sequence& left, const Sequence& right) {
  return left.kind == right.kind || (left.is_tuple() && right.is_tuple());
}

// Whether left < right (or <= where `or_equal`) for the pair of types that Python orders.
bool ordered(Budget& budget, const Value& left, const Value& right, bool or_equal, CompareOperator op) {
  const Nesting nesting(budget);
  budget.work();
  require_defined(left);
  require_defined(right);
  if (left.number() && right.number()) {
    const int order = order_numbers(left, right);
    return order == -1 || (or_equal && order == 0);
  }
  if (left.text() != nullptr && right.text() != nullptr) {
    // UTF-8 sorts as its code points do.
    budget.work_bytes(std::min(left.text()->bytes.size(), right.text()->bytes.size()));
    const int order = left.text()->bytes.compare(right.text()->bytes);
    return order < 0 || (or_equal && order == 0);
  }
  const Sequence* a = left.sequence();
  const Sequence* b = right.sequence();
  if (a != nullptr && b != nullptr && are_alike(*a, *b) && (a->is_list() || a->is_tuple())) {
    const std::size_t common = std::min(a->items.size(), b->items.size());
    for (std::size_t i = 0; i < common; ++i) {
      if (a->items[i].same_as(b->items[i]) || equals(budget, a->items[i], b->items[i])) continue;
      return ordered(budget, a->items[i], b->items[i], or_equal, op);
    }
    return a->items.size() < b->items.size() || (or_equal && a->items.size() == b->items.size());
  }
  const bool swapped = op == CompareOperator::greater || op == CompareOperator::greater_equal;
  throw TemplateError(fmt::format("'{}' not supported between instances of '{}' and '{}'",
                                  kCompareSymbols[static_cast<std::size_t>(op)], (swapped ? right : left).type_name(),
                                  (swapped ? left : right).type_name()));
}

}  // namespace

bool is_true(const Value& value) {
  if (const auto number = value.number()) return *number != 0;
  if (value.is_none()) return false;
  if (value.iterator() != nullptr || value.object() != nullptr) return true;
  return length_of(value) != 0;
}

Value apply(Budget& budget, BinaryOperator op, const Value& left, const Value& right) {
  // The format string decides about its operand, as Python's str.__mod__ does.
  if (op == BinaryOperator::modulo && left.text() != nullptr) return percent_format(budget, *left.text(), right);
  require_defined(left);
  require_defined(right);
  if (left.integer() && right.integer()) return apply_integers(op, *left.integer(), *right.integer());
  if (left.number() && right.number()) return apply_floats(op, *left.number(), *right.number());
  if (op == BinaryOperator::add) return add_other(budget, left, right);
  if (op == BinaryOperator::multiply) return multiply_other(budget, left, right);
  fail_operands(op, left, right);
}

Value apply(UnaryOperator op, const Value& operand) {
  require_defined(operand);
  if (const auto integer = operand.integer()) {
    return op == UnaryOperator::plus ? Value(*integer) : apply_integers(BinaryOperator::subtract, 0, *integer);
  }
  if (const auto number = operand.number()) return op == UnaryOperator::plus ? *number : -*number;
  throw TemplateError(
      fmt::format("bad operand type for unary {}: '{}'", op == UnaryOperator::plus ? '+' : '-', operand.type_name()));
}

bool compare(Budget& budget, CompareOperator op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOperator::equal:
      return equals(budget, left, right);
    case CompareOperator::not_equal:
      return !equals(budget, left, right);
    case CompareOperator::less:
      return ordered(budget, left, right, false, op);
    case CompareOperator::less_equal:
      return ordered(budget, left, right, true, op);
    case CompareOperator::greater:
      return ordered(budget, right, left, false, op);
    case CompareOperator::greater_equal:
      return ordered(budget, right, left, true, op);
    case CompareOperator::in:
      return contains(budget, right, left);
    case CompareOperator::not_in:
      return !contains(budget, right, left);
  }
  return false;
}

bool equals(Budget& budget, const Value& left, const Value& right) {
  const Nesting nesting(budget);
  budget.work();
  if (left.number() && right.number()) return order_numbers(left, right) == 0;
  if (left.text() != nullptr && right.text() != nullptr) {
    budget.work_bytes(std::min(left.text()->bytes.size(), right.text()->bytes.size()));
    return left.text()->bytes == right.text()->bytes;
  }
  if (left.is_undefined() || right.is_undefined()) return left.is_undefined() && right.is_undefined();
  const Sequence* a = left.sequence();
  const Sequence* b = right.sequence();
  if (a != nullptr && b != nullptr && are_alike(*a, *b)) return equal_items(budget, a->items, b->items);
  if (left.dict() != nullptr && right.dict() != nullptr) return equal_dicts(budget, *left.dict(), *right.dict());
  return left.same_as(right);
}

bool less_than(Budget& budget, const Value& left, const Value& right) {
  return ordered(budget, left, right, false, CompareOperator::less);
}

bool contains(Budget& budget, const Value& container, const Value& item) {
  if (const Text* text = container.text()) {
    if (item.text() == nullptr) {
      throw TemplateError(fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
    }
    budget.work_bytes(text->bytes.size());
    return find(text->bytes, item.text()->bytes) != std::string_view::npos;
  }
  if (const Dict* dict = container.dict()) return dict->find(budget, item) != nullptr;
  if (!is_iterable(container)) {
    throw TemplateError(fmt::format("argument of type '{}' is not iterable", container.type_name()));
  }
  ItemSource source(budget, container);
  while (const auto candidate = source.next()) {
    if (candidate->same_as(item) || equals(budget, *candidate, item)) return true;
  }
  return false;
}

std::int64_t truncate_to_integer(double value) {
  if (std::isnan(value)) throw TemplateError("cannot convert float NaN to integer");
  if (std::isinf(value)) throw TemplateError("cannot convert float infinity to integer");
  if (std::abs(value) >= 0x1p63) fail_overflow();
  return static_cast<std::int64_t>(value);
}

}  // namespace qpn8::jinja
