#include <fmt/format.h>

#include "text/jinja/attributes.hpp"
#include "text/jinja/format_spec.hpp"
#include "text/jinja/html.hpp"
#include "text/jinja/methods.hpp"
#include "text/jinja/repr.hpp"

// str.format: literal text and {field!conversion:spec}, where a field is a position or a name with .attributes and
// [items], and a spec may hold fields itself.

namespace qpn8::jinja {
namespace {

class FieldFormatter {
 public:
  FieldFormatter(Runtime& runtime, const Arguments& arguments, bool markup)
      : runtime_(runtime), arguments_(arguments), markup_(markup) {}

  std::string run(std::string_view format, int levels_left) {
    if (levels_left < 0) throw TemplateError("Max string recursion exceeded");
    TextBuilder out(runtime_.budget());
    for (std::size_t i = 0; i < format.size();) {
      const std::size_t brace = std::min(format.find_first_of("{}", i), format.size());
      out.append(format.substr(i, brace - i));
      if (brace == format.size()) break;
      if (brace + 1 < format.size() && format[brace + 1] == format[brace]) {
        out.append(1, format[brace]);
        i = brace + 2;
        continue;
      }
      if (format[brace] == '}') throw TemplateError("Single '}' encountered in format string");
      const std::size_t close = closing_brace(format, brace);
      out.append(field(format.substr(brace + 1, close - brace - 1), levels_left));
      i = close + 1;
    }
    return out.take();
  }

 private:
  static std::size_t closing_brace(std::string_view format, std::size_t open) {
    int depth = 0;
    for (std::size_t i = open; i < format.size(); ++i) {
      depth += static_cast<int>(format[i] == '{') - static_cast<int>(format[i] == '}');
      if (depth == 0) return i;
    }
    throw TemplateError("expected '}' before end of string");
  }

  std::string field(std::string_view text, int levels_left) {
    const std::size_t name_end = std::min(text.find_first_of("!:"), text.size());
    const Value value = lookup(text.substr(0, name_end));
    std::string_view rest = text.substr(name_end);
    char conversion = '\0';
    if (!rest.empty() && rest[0] == '!') {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) {
        throw TemplateError("expected ':' after conversion specifier");
      }
      conversion = rest[1];
      rest.remove_prefix(2);
    }
    if (!rest.empty()) rest.remove_prefix(1);
    return convert(value, conversion, run(rest, levels_left - 1));
  }

  std::string convert(const Value& value, char conversion, const std::string& spec) {
    Budget& budget = runtime_.budget();
    if (conversion != '\0' && conversion != 's' && conversion != 'r') {
      throw TemplateError(fmt::format("Unknown conversion specifier {}", conversion));
    }
    const bool is_safe = conversion == '\0' && value.text() != nullptr && value.text()->markup;
    std::string text;
    if (conversion == '\0') {
      text = format_value(budget, spec, value);
    } else {
      text = conversion == 'r' ? to_repr(budget, value) : to_str(budget, value);
      if (!spec.empty()) text = format_value(budget, spec, make_text(budget, std::move(text)));
    }
    return markup_ && !is_safe ? escape_html(budget, text) : text;
  }

  Value lookup(std::string_view name) {
    const std::size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, first_end));
    name.remove_prefix(first_end);
    while (!name.empty()) {
      if (name[0] == '.') {
        const std::size_t end = std::min(name.find_first_of(".[", 1), name.size());
        if (end == 1) throw TemplateError("Empty attribute in format string");
        value = get_attribute(runtime_, value, name.substr(1, end - 1));
        name.remove_prefix(end);
      } else {
        const std::size_t end = name.find(']');
        if (name[0] != '[' || end == std::string_view::npos) throw TemplateError("Missing ']' in format string");
        value = get_item(runtime_, value, index(name.substr(1, end - 1)));
        name.remove_prefix(end + 1);
      }
    }
    return value;
  }

  Value index(std::string_view text) {
    if (text.empty()) throw TemplateError("Empty attribute in format string");
    std::size_t end = 0;
    const auto number = read_width(text, end);
    if (number && end == text.size()) return *number;
    return make_text(runtime_.budget(), std::string(text));
  }

  Value argument(std::string_view name) {
    std::size_t end = 0;
    auto position = read_width(name, end);
    if (position && end != name.size()) position.reset();
    if (name.empty() || position) {
      const Numbering numbering = name.empty() ? Numbering::automatic : Numbering::manual;
      if (numbering_ != Numbering::none && numbering_ != numbering) {
        throw TemplateError("cannot switch between manual field specification and automatic field numbering");
      }
      numbering_ = numbering;
      const auto i = static_cast<std::size_t>(position ? *position : next_++);
      if (i >= arguments_.positional.size()) {
        throw TemplateError(fmt::format("Replacement index {} out of range for positional args tuple", i));
      }
      return arguments_.positional[i];
    }
    for (const auto& [keyword, value] : arguments_.keywords) {
      if (keyword == name) return value;
    }
    throw TemplateError(fmt::format("format has no argument {}", quote(name)));
  }

  enum class Numbering : std::uint8_t { none, automatic, manual };

  Runtime& runtime_;
  const Arguments& arguments_;
  bool markup_;
  Numbering numbering_ = Numbering::none;
  std::int64_t next_ = 0;
};

}  // namespace

Value format_fields(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Text& format = *self.text();
  FieldFormatter formatter(runtime, arguments, format.markup);
  return make_text(runtime.budget(), formatter.run(format.bytes, 2), format.markup);
}

}  // namespace qpn8::jinja
