#include "text/json_view.hpp"

#include <fmt/format.h>

#include <utility>

namespace qpn8::text {

using nlohmann::json;

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  const std::string shown = text.size() <= kLongest ? std::string(text)
                                                    : fmt::format("{}...{}", text.substr(0, kLongest / 2),
                                                                  text.substr(text.size() - kLongest / 2));
  // A cut through a code point is repaired by the replacing error handler.
  return json(shown).dump(-1, ' ', false, json::error_handler_t::replace);
}

JsonView::JsonView(const json& value, std::string file) : value_(&value), file_(std::move(file)) {}

JsonView::JsonView(const json& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

JsonView JsonView::child(const json& value, const std::string& label) const {
  const bool joins = path_.empty() || label.starts_with('[');
  return {value, file_, path_ + (joins ? "" : ".") + label};
}

JsonView JsonView::operator[](std::string_view key) const {
  static const json kNull;
  if (!value_->is_object()) fail_type("an object");
  const auto member = value_->find(key);
  return child(member == value_->end() ? kNull : *member, std::string(key));
}

std::vector<JsonView> JsonView::items() const {
  if (!value_->is_array()) fail_type("an array");
  std::vector<JsonView> result;
  result.reserve(value_->size());
  for (const json& item : *value_) result.push_back(child(item, fmt::format("[{}]", result.size())));
  return result;
}

const std::string& JsonView::text() const {
  if (!value_->is_string()) fail_type("a string");
  return value_->get_ref<const std::string&>();
}

std::optional<std::string> JsonView::optional_text() const {
  if (is_null()) return std::nullopt;
  return text();
}

std::string JsonView::text_or(std::string_view fallback) const { return is_null() ? std::string(fallback) : text(); }

bool JsonView::flag_or(bool fallback) const {
  if (is_null()) return fallback;
  if (!value_->is_boolean()) fail_type("true or false");
  return value_->get<bool>();
}

std::int64_t JsonView::integer(std::int64_t low, std::int64_t high) const {
  if (!value_->is_number_integer()) fail_type(fmt::format("a whole number from {} to {}", low, high));
  const bool beyond = value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(high);
  const std::int64_t number = beyond ? high : value_->get<std::int64_t>();
  if (beyond || number < low || number > high) {
    fail(fmt::format("is {}; a whole number from {} to {} is needed", value_->dump(), low, high));
  }
  return number;
}

std::string JsonView::place() const { return path_.empty() ? file_ : file_ + ": " + path_; }

void JsonView::fail(Error::Kind kind, const std::string& what) const { throw Error(kind, place() + ": " + what); }

void JsonView::fail_type(const std::string& expected) const {
  fail(is_null() ? fmt::format("is missing; {} is needed", expected)
                 : fmt::format("is {} {}; {} is needed", value_->is_array() || value_->is_object() ? "an" : "a",
                               value_->type_name(), expected));
}

json parse_document(std::string_view text, const std::string& file) {
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    // The library's own prefix "[json.exception.parse_error.101] " tells a user nothing.
    std::string_view what = error.what();
    if (const std::size_t end = what.find("] "); what.starts_with('[') && end != std::string_view::npos) {
      what.remove_prefix(end + 2);
    }
    throw Error(Error::bad_file, fmt::format("{}: not valid JSON: {}", file, what));
  }
}

}  // namespace qpn8::text
