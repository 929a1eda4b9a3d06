#include "text/jinja/repr.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "text/jinja/object.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

void append_joined(TextBuilder& out, const std::vector<Value>& items) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) out.append(", ");
    first = false;
    append_repr(out, item);
  }
}

void append_range(TextBuilder& out, const Sequence& range) {
  const auto [start, stop, step] = range.range;
  out.append(step == 1 ? fmt::format("range({}, {})", start, stop)
                       : fmt::format("range({}, {}, {})", start, stop, step));
}

void append_sequence(TextBuilder& out, const Sequence& sequence) {
  switch (sequence.kind) {
    case SequenceKind::range:
      append_range(out, sequence);
      return;
    case SequenceKind::tuple:
    case SequenceKind::group:
      out.append("(");
      append_joined(out, sequence.items);
      out.append(sequence.items.size() == 1 ? ",)" : ")");
      return;
    case SequenceKind::list:
      out.append("[");
      break;
    case SequenceKind::dict_keys:
      out.append("dict_keys([");
      break;
    case SequenceKind::dict_values:
      out.append("dict_values([");
      break;
    case SequenceKind::dict_items:
      out.append("dict_items([");
      break;
  }
  append_joined(out, sequence.items);
  out.append(sequence.is_list() ? "]" : "])");
}

void append_dict(TextBuilder& out, const Dict& dict) {
  out.append("{");
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out.append(", ");
    first = false;
    append_repr(out, key);
    out.append(": ");
    append_repr(out, value);
  }
  out.append("}");
}

void append_escape(std::string& out, CodePoint c) {
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (c < 0x100) {
    out += fmt::format("\\x{:02x}", c);
  } else if (c < 0x10000) {
    out += fmt::format("\\u{:04x}", c);
  } else {
    out += fmt::format("\\U{:08x}", c);
  }
}

}  // namespace

void append_str(TextBuilder& out, const Value& value) {
  out.budget().work();
  if (const Text* text = value.text()) {
    out.append(text->bytes);
  } else if (!value.is_undefined()) {
    append_repr(out, value);
  }
}

std::string to_str(Budget& budget, const Value& value) {
  TextBuilder out(budget);
  append_str(out, value);
  return out.take();
}

void append_repr(TextBuilder& out, const Value& value) {
  const Nesting nesting(out.budget());
  out.budget().work();
  if (const Text* text = value.text()) {
    out.budget().work_characters(text->bytes.size());
    out.append(text->markup ? fmt::format("Markup({})", quote(text->bytes)) : quote(text->bytes));
  } else if (value.is_none()) {
    out.append("None");
  } else if (value.is_bool()) {
    out.append(*value.integer() != 0 ? "True" : "False");
  } else if (const auto integer = value.integer()) {
    out.append(fmt::format("{}", *integer));
  } else if (const auto number = value.number()) {
    out.append(format_float(*number));
  } else if (value.is_undefined()) {
    out.append("Undefined");
  } else if (const Sequence* sequence = value.sequence()) {
    append_sequence(out, *sequence);
  } else if (const Dict* dict = value.dict()) {
    append_dict(out, *dict);
  } else if (const Iterator* iterator = value.iterator()) {
    out.append(fmt::format("<{} object>", iterator->type_name));
  } else {
    value.object()->append_repr(out);
  }
}

std::string to_repr(Budget& budget, const Value& value) {
  TextBuilder out(budget);
  append_repr(out, value);
  return out.take();
}

std::string quote(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char mark = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, mark);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t start = i;
    const CodePoint c = next_code_point(text, i);
    if (c == mark || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (is_printable(c)) {
      out += text.substr(start, i - start);
    } else {
      append_escape(out, c);
    }
  }
  out += mark;
  return out;
}

std::string format_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer{};
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string_view scientific(buffer.data(), static_cast<std::size_t>(written.ptr - buffer.data()));
  const std::size_t e = scientific.find('e');
  const int exponent = std::atoi(std::string(scientific.substr(e + 1)).c_str());
  // Python changes to exponents where a plain number would be long.
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02}", scientific.substr(0, e), exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  const auto plain = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  std::string out(buffer.data(), plain.ptr);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

}  // namespace qpn8::jinja
