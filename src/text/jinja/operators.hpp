#pragma once

#include <cstdint>
#include <string_view>

#include "text/jinja/value.hpp"

// Python's operators on values. Operands of types that do not go together are a TemplateError in Python's words;
// integers are 64 bit, and a result beyond that is a TemplateError.

namespace qpn8::jinja {

enum class BinaryOperator : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class UnaryOperator : std::uint8_t { plus, minus };
enum class CompareOperator : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

bool is_true(const Value& value);

Value apply(Budget& budget, BinaryOperator op, const Value& left, const Value& right);
Value apply(UnaryOperator op, const Value& operand);
bool compare(Budget& budget, CompareOperator op, const Value& left, const Value& right);

bool equals(Budget& budget, const Value& left, const Value& right);
bool less_than(Budget& budget, const Value& left, const Value& right);
bool contains(Budget& budget, const Value& container, const Value& item);

/// The value itself as a new int; TemplateError if the float is not finite or beyond 64 bits.
std::int64_t truncate_to_integer(double value);

}  // namespace qpn8::jinja
