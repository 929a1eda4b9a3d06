#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/filters.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"
#include "text/jinja/unicode.hpp"

// tojson as Hugging Face defines it: json.dumps without the escapes for HTML that Jinja's own adds.

namespace qpn8::jinja {
namespace {

struct JsonStyle {
  bool ascii = false;
  bool sorted = false;
  bool indented = false;
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

class JsonWriter {
 public:
  JsonWriter(Budget& budget, JsonStyle style) : budget_(budget), style_(std::move(style)), out_(budget) {}

  Value run(const Value& value) {
    write(value, 1);
    return make_text(std::move(out_));
  }

 private:
  void write(const Value& value, int level) {
    const Nesting nesting(budget_);
    budget_.work();
    if (const Text* text = value.text()) {
      write_text(text->bytes);
    } else if (const auto* dict = value.dict()) {
      write_dict(*dict, level);
    } else if (const Sequence* sequence = value.sequence(); sequence != nullptr && is_array(*sequence)) {
      write_array(*sequence, level);
    } else if (const auto scalar = scalar_text(value)) {
      out_.append(*scalar);
    } else {
      throw TemplateError(fmt::format("Object of type {} is not JSON serializable", value.type_name()));
    }
  }

  static bool is_array(const Sequence& sequence) { return sequence.is_list() || sequence.is_tuple(); }

  static std::optional<std::string> scalar_text(const Value& value) {
    if (value.is_none()) return "null";
    if (value.is_bool()) return is_true(value) ? "true" : "false";
    if (const auto integer = value.integer()) return fmt::format("{}", *integer);
    if (const auto number = value.number()) {
      if (std::isnan(*number)) return "NaN";
      if (std::isinf(*number)) return *number < 0 ? "-Infinity" : "Infinity";
      return format_float(*number);
    }
    return std::nullopt;
  }

  void new_line(int level) {
    if (!style_.indented) return;
    out_.append("\n");
    for (int i = 0; i < level; ++i) out_.append(style_.indent);
  }

  void write_array(const Sequence& sequence, int level) {
    out_.append("[");
    bool first = true;
    for (const Value& item : sequence.items) {
      if (!first) out_.append(style_.item_separator);
      first = false;
      new_line(level);
      write(item, level + 1);
    }
    if (!first) new_line(level - 1);
    out_.append("]");
  }

  void write_dict(const Dict& dict, int level) {
    std::vector<Dict::Entry> entries = dict.entries();
    if (style_.sorted) {
      std::stable_sort(entries.begin(), entries.end(),
                       [this](const Dict::Entry& a, const Dict::Entry& b) { return less_than(budget_, a.key, b.key); });
    }
    out_.append("{");
    bool first = true;
    for (const auto& [key, value] : entries) {
      if (!first) out_.append(style_.item_separator);
      first = false;
      new_line(level);
      write_key(key);
      out_.append(style_.key_separator);
      write(value, level + 1);
    }
    if (!first) new_line(level - 1);
    out_.append("}");
  }

  void write_key(const Value& key) {
    if (key.text() != nullptr) {
      write_text(key.text()->bytes);
    } else if (const auto scalar = scalar_text(key)) {
      write_text(*scalar);
    } else {
      throw TemplateError(fmt::format("keys must be str, int, float, bool or None, not {}", key.type_name()));
    }
  }

  void write_text(std::string_view text) {
    budget_.work_characters(text.size());
    out_.append("\"");
    std::size_t plain = 0;
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t start = i;
      const CodePoint c = next_code_point(text, i);
      const bool escaped = c < 0x20 || c == '"' || c == '\\' || (style_.ascii && c >= 0x7f);
      if (!escaped) continue;
      out_.append(text.substr(plain, start - plain));
      write_escape(c);
      plain = i;
    }
    out_.append(text.substr(plain));
    out_.append("\"");
  }

  void write_escape(CodePoint c) {
    constexpr std::string_view kShort = "\"\"\\\\\nn\rr\tt\ff\bb";
    for (std::size_t i = 0; i < kShort.size(); i += 2) {
      if (c != kShort[i]) continue;
      out_.append("\\");
      out_.append(1, kShort[i + 1]);
      return;
    }
    if (c < 0x10000) {
      out_.append(fmt::format("\\u{:04x}", c));
    } else {
      const CodePoint rest = c - 0x10000;
      out_.append(fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff)));
    }
  }

  Budget& budget_;
  JsonStyle style_;
  TextBuilder out_;
};

std::string indent_text(Budget& budget, const Value& indent) {
  if (indent.text() != nullptr) return indent.text()->bytes;
  const std::int64_t width = std::max<std::int64_t>(to_index(indent), 0);
  budget.check_text_size(width);
  std::string blanks;
  blanks.resize(static_cast<std::size_t>(width), ' ');
  return blanks;
}

}  // namespace

Value tojson(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const BoundArguments bound("filter 'tojson'", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  Budget& budget = runtime.budget();
  JsonStyle style;
  style.ascii = bound.boolean(0, false);
  style.sorted = bound.boolean(3, false);
  if (const Value* indent = bound.optional(1)) {
    style.indented = true;
    style.indent = indent_text(budget, *indent);
    style.item_separator = ",";
  }
  if (const Value* separators = bound.optional(2)) {
    const std::vector<Value> both = items_of(budget, *separators);
    if (both.size() != 2) throw TemplateError("filter 'tojson': separators is not a pair of texts");
    style.item_separator = to_text(both[0], "a separator");
    style.key_separator = to_text(both[1], "a separator");
  }
  return JsonWriter(budget, std::move(style)).run(input);
}

}  // namespace qpn8::jinja
