#include "text/jinja/percent_format.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/format_spec.hpp"
#include "text/jinja/html.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(Budget& budget, const Text& format, const Value& arguments)
      : budget_(budget), format_(format.bytes), markup_(format.markup), arguments_(arguments), out_(budget) {
    const Sequence* sequence = arguments.sequence();
    tuple_ = sequence != nullptr && sequence->is_tuple() ? sequence : nullptr;
  }

  Value run() {
    while (position_ < format_.size()) {
      const std::size_t percent = std::min(format_.find('%', position_), format_.size());
      out_.append(format_.substr(position_, percent - position_));
      position_ = percent + 1;
      if (percent < format_.size()) conversion();
    }
    if (!all_used()) throw TemplateError("not all arguments converted during string formatting");
    return make_text(std::move(out_), markup_);
  }

 private:
  char peek() const {
    if (position_ >= format_.size()) throw TemplateError("incomplete format");
    return format_[position_];
  }

  // What Python takes for a mapping need not be used up.
  bool all_used() const {
    if (tuple_ != nullptr) return used_ == tuple_->items.size();
    const bool mapping = arguments_.dict() != nullptr || arguments_.sequence() != nullptr || arguments_.is_undefined();
    return mapping || used_ == 1;
  }

  const Value& next_argument() {
    const std::size_t count = tuple_ != nullptr ? tuple_->items.size() : 1;
    if (used_ >= count) throw TemplateError("not enough arguments for format string");
    ++used_;
    return tuple_ != nullptr ? tuple_->items[used_ - 1] : arguments_;
  }

  const Value* named_argument() {
    const std::size_t start = ++position_;
    int open = 1;
    while (open > 0) {
      const char c = peek();
      open += static_cast<int>(c == '(') - static_cast<int>(c == ')');
      ++position_;
    }
    const std::string_view name = format_.substr(start, position_ - start - 1);
    const Dict* dict = arguments_.dict();
    if (dict == nullptr) throw TemplateError("format requires a mapping");
    const Value* found = dict->find(name);
    if (found == nullptr) throw TemplateError(fmt::format("{} is not a key of the format's mapping", quote(name)));
    return found;
  }

  void flags(FormatSpec& spec) {
    bool zero = false;
    for (;; ++position_) {
      switch (peek()) {
        case '-':
          spec.align = '<';
          continue;
        case '+':
          spec.sign = '+';
          continue;
        case ' ':
          spec.sign = spec.sign == '+' ? '+' : ' ';
          continue;
        case '#':
          spec.alternate = true;
          continue;
        case '0':
          zero = true;
          continue;
        default:
          break;
      }
      break;
    }
    if (zero && spec.align == '\0') {
      spec.align = '=';
      spec.fill = "0";
    }
  }

  std::optional<std::int64_t> number() {
    if (peek() != '*') return read_width(format_, position_);
    ++position_;
    const Value& argument = next_argument();
    if (!argument.integer()) throw TemplateError("* wants int");
    const std::string digits = fmt::format("{}", *argument.integer());
    std::size_t i = digits[0] == '-' ? 1 : 0;
    const auto magnitude = read_width(digits, i);
    return digits[0] == '-' ? -*magnitude : *magnitude;
  }

  void conversion() {
    if (peek() == '%') {
      ++position_;
      out_.append("%");
      return;
    }
    FormatSpec spec;
    const Value* argument = peek() == '(' ? named_argument() : nullptr;
    flags(spec);
    spec.width = number().value_or(0);
    if (spec.width < 0) {
      spec.width = -spec.width;
      spec.align = '<';
    }
    if (peek() == '.') {
      ++position_;
      spec.precision = std::max<std::int64_t>(number().value_or(0), 0);
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++position_;
    spec.type = peek();
    ++position_;
    if (spec.type == '%') {
      out_.append("%");
      return;
    }
    write(spec, argument == nullptr ? next_argument() : *argument);
  }

  void write(FormatSpec& spec, const Value& argument) {
    switch (spec.type) {
      case 's':
      case 'r':
        write_text(spec, argument);
        return;
      case 'c':
        write_character(spec, argument);
        return;
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        write_integer(spec, argument);
        return;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        require_defined(argument);
        if (!argument.number()) {
          throw TemplateError(fmt::format("must be real number, not {}", argument.type_name()));
        }
        out_.append(format_real(budget_, spec, *argument.number()));
        return;
      default:
        throw TemplateError(fmt::format("unsupported format character '{}'", spec.type));
    }
  }

  void write_text(FormatSpec& spec, const Value& argument) {
    if (spec.fill == "0") {
      spec.fill = " ";
      spec.align = '>';
    } else if (spec.align == '\0') {
      spec.align = '>';
    }
    std::string text = spec.type == 'r' ? to_repr(budget_, argument) : to_str(budget_, argument);
    const Text* argument_text = argument.text();
    if (markup_ && (spec.type == 'r' || argument_text == nullptr || !argument_text->markup)) {
      text = escape_html(budget_, text);
    }
    out_.append(format_text(budget_, spec, text));
  }

  void write_character(FormatSpec& spec, const Value& argument) {
    spec.align = spec.align == '<' ? '<' : '>';
    spec.fill = " ";
    spec.precision.reset();
    if (const auto integer = argument.integer()) {
      out_.append(format_integer(budget_, spec, *integer));
    } else if (argument.text() != nullptr && argument.text()->length == 1) {
      out_.append(format_text(budget_, spec, argument.text()->bytes));
    } else {
      throw TemplateError("%c requires int or char");
    }
  }

  void write_integer(FormatSpec& spec, const Value& argument) {
    require_defined(argument);
    const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    std::optional<std::int64_t> value = argument.integer();
    if (!value && decimal && argument.is_float()) value = truncate_to_integer(*argument.number());
    if (!value) {
      throw TemplateError(fmt::format("%{} format: {} is required, not {}", spec.type,
                                      decimal ? "a real number" : "an integer", argument.type_name()));
    }
    if (!spec.precision) {
      out_.append(format_integer(budget_, spec, *value));
      return;
    }
    // The precision of an integer is its least number of digits.
    FormatSpec digits = spec;
    digits.fill = "0";
    digits.align = '=';
    digits.width = *spec.precision + static_cast<std::int64_t>(*value < 0 || spec.sign != '-') +
                   (spec.alternate && !decimal ? 2 : 0);
    digits.precision.reset();
    FormatSpec padding = spec;
    padding.precision.reset();
    padding.align = spec.align == '<' ? '<' : '>';
    padding.fill = " ";
    out_.append(format_text(budget_, padding, format_integer(budget_, digits, *value)));
  }

  Budget& budget_;
  std::string_view format_;
  bool markup_;
  const Value& arguments_;
  const Sequence* tuple_ = nullptr;
  TextBuilder out_;
  std::size_t position_ = 0;
  std::size_t used_ = 0;
};

}  // namespace

Value percent_format(Budget& budget, const Text& format, const Value& arguments) {
  return PercentFormatter(budget, format, arguments).run();
}

}  // namespace qpn8::jinja
