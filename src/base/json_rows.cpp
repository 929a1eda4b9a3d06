#include "base/json_rows.hpp"

#include <algorithm>
#include <cstddef>

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kOneLine = 100;  ///< characters of an object that stays on its line

bool is_table(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Json& element) { return element.is_structured(); });
}

bool opens(const Json& value) { return is_table(value) || (value.is_object() && value.dump().size() > kOneLine); }

void append(const Json& value, std::size_t indent, std::string& text) {
  if (!opens(value)) {
    text += value.dump();
    return;
  }
  const std::string line = "\n" + std::string(indent + 1, ' ');
  const bool object = value.is_object();
  text += object ? '{' : '[';
  bool first = true;
  for (const auto& [key, element] : value.items()) {
    if (!first) text += ',';
    first = false;
    text += line;
    if (object) {
      text += Json(key).dump() + ": ";
      append(element, indent + 1, text);
    } else {
      text += element.dump();
    }
  }
  text += "\n" + std::string(indent, ' ') + (object ? '}' : ']');
}

}  // namespace

std::string dump_rows(const Json& document) {
  std::string text;
  append(document, 0, text);
  return text + "\n";
}

}  // namespace qpn8
