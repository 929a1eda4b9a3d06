#include "text/jinja/tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/filters.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

using Predicate = bool (*)(const Value& subject);
using Body = bool (*)(Runtime& runtime, const Value& subject, const Value* argument);

// A test takes at most one argument.
struct NamedTest {
  std::string_view name;
  Body body;
  bool takes_argument;
};

template <Predicate predicate>
bool simple(Runtime& /*runtime*/, const Value& subject, const Value* /*argument*/) {
  return predicate(subject);
}

template <CompareOperator op>
bool comparison(Runtime& runtime, const Value& subject, const Value* argument) {
  return compare(runtime.budget(), op, subject, *argument);
}

bool is_boolean(const Value& v) { return v.is_bool(); }
bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_the_true(const Value& v) { return v.is_bool() && is_true(v); }
bool is_the_false(const Value& v) { return v.is_bool() && !is_true(v); }
bool is_integer(const Value& v) { return v.integer() && !v.is_bool(); }
bool is_real(const Value& v) { return v.is_float(); }
bool is_number(const Value& v) { return v.number().has_value(); }
bool is_string(const Value& v) { return v.text() != nullptr; }
bool is_mapping(const Value& v) { return v.dict() != nullptr; }
bool is_escaped(const Value& v) { return v.text() != nullptr && v.text()->markup; }
bool is_callable(const Value& v) { return v.is_undefined() || (v.object() != nullptr && v.object()->is_callable()); }
// Whatever has a length and items; an undefined value counts, as in Jinja.
bool is_sequence(const Value& v) {
  return v.is_undefined() || v.text() != nullptr || v.dict() != nullptr ||
         (v.sequence() != nullptr && !v.sequence()->is_view());
}

bool remainder_is(Runtime& runtime, const Value& subject, const Value& divisor, int remainder) {
  const Value rest = apply(runtime.budget(), BinaryOperator::modulo, subject, divisor);
  return equals(runtime.budget(), rest, remainder);
}
bool is_even(Runtime& runtime, const Value& subject, const Value* /*argument*/) {
  return remainder_is(runtime, subject, 2, 0);
}
bool is_odd(Runtime& runtime, const Value& subject, const Value* /*argument*/) {
  return remainder_is(runtime, subject, 2, 1);
}
bool is_divisible(Runtime& runtime, const Value& subject, const Value* argument) {
  return remainder_is(runtime, subject, *argument, 0);
}

// All cased characters of the printed value are of the one case, and there is one.
template <bool (*right)(CodePoint)>
bool has_case(Runtime& runtime, const Value& subject, const Value* /*argument*/) {
  bool any = false;
  const std::string text = to_str(runtime.budget(), subject);
  runtime.budget().work_characters(text.size());
  const bool all = all_code_points(text, [&any](CodePoint c) {
    any |= is_cased(c);
    return !is_cased(c) || right(c);
  });
  return all && any;
}

bool is_filter(const Value& v) { return v.text() != nullptr && has_filter(v.text()->bytes); }
bool is_test(const Value& v) { return v.text() != nullptr && has_test(v.text()->bytes); }
bool is_same_as(Runtime& /*runtime*/, const Value& subject, const Value* argument) {
  return subject.same_as(*argument);
}

constexpr std::array<NamedTest, 39> kTests = {{
    {"boolean", simple<is_boolean>, false},
    {"callable", simple<is_callable>, false},
    {"defined", simple<is_defined>, false},
    {"divisibleby", is_divisible, true},
    {"escaped", simple<is_escaped>, false},
    {"even", is_even, false},
    {"false", simple<is_the_false>, false},
    {"filter", simple<is_filter>, false},
    {"float", simple<is_real>, false},
    {"in", comparison<CompareOperator::in>, true},
    {"integer", simple<is_integer>, false},
    {"iterable", simple<is_iterable>, false},
    {"lower", has_case<is_lower>, false},
    {"mapping", simple<is_mapping>, false},
    {"none", simple<is_none>, false},
    {"number", simple<is_number>, false},
    {"odd", is_odd, false},
    {"sameas", is_same_as, true},
    {"sequence", simple<is_sequence>, false},
    {"string", simple<is_string>, false},
    {"test", simple<is_test>, false},
    {"true", simple<is_the_true>, false},
    {"undefined", simple<is_undefined>, false},
    {"upper", has_case<is_upper>, false},
    {"==", comparison<CompareOperator::equal>, true},
    {"eq", comparison<CompareOperator::equal>, true},
    {"equalto", comparison<CompareOperator::equal>, true},
    {"!=", comparison<CompareOperator::not_equal>, true},
    {"ne", comparison<CompareOperator::not_equal>, true},
    {"<", comparison<CompareOperator::less>, true},
    {"lt", comparison<CompareOperator::less>, true},
    {"lessthan", comparison<CompareOperator::less>, true},
    {"<=", comparison<CompareOperator::less_equal>, true},
    {"le", comparison<CompareOperator::less_equal>, true},
    {">", comparison<CompareOperator::greater>, true},
    {"gt", comparison<CompareOperator::greater>, true},
    {"greaterthan", comparison<CompareOperator::greater>, true},
    {">=", comparison<CompareOperator::greater_equal>, true},
    {"ge", comparison<CompareOperator::greater_equal>, true},
}};

const NamedTest* find_test(std::string_view name) {
  const auto* found =
      std::find_if(kTests.begin(), kTests.end(), [name](const NamedTest& test) { return test.name == name; });
  return found == kTests.end() ? nullptr : found;
}

}  // namespace

bool has_test(std::string_view name) { return find_test(name) != nullptr; }

bool apply_test(Runtime& runtime, std::string_view name, const Value& subject, const Arguments& arguments) {
  const NamedTest* test = find_test(name);
  if (test == nullptr) throw TemplateError(fmt::format("No test named '{}'.", name));
  const std::string what = fmt::format("test '{}'", name);
  if (!test->takes_argument) {
    refuse_arguments(what, arguments);
    return test->body(runtime, subject, nullptr);
  }
  const BoundArguments bound(what, arguments, {"other"}, 1);
  return test->body(runtime, subject, &bound[0]);
}

}  // namespace qpn8::jinja
