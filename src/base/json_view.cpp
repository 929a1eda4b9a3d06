#include "base/json_view.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/json_file.hpp"
#include "base/printable.hpp"

namespace qpn8 {

using nlohmann::json;

namespace {

/// nlohmann keeps a non-negative integer beyond int64 as unsigned: it is above any bound.
bool is_above(const json& value, std::int64_t high) {
  if (value.is_number_unsigned()) return std::cmp_greater(value.get<std::uint64_t>(), high);
  return value.is_number_integer() && value.get<std::int64_t>() > high;
}

}  // namespace

JsonView::JsonView(const json& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

JsonView JsonView::child(const json& value, const std::string& label) const {
  const bool joins = path_.empty() || label.starts_with('[');
  return {value, file_, path_ + (joins ? "" : ".") + label};
}

const json& JsonView::object() const {
  if (!value_->is_object()) refuse("an object");
  return *value_;
}

JsonView JsonView::operator[](std::string_view key) const {
  static const json kNull;
  const auto member = object().find(key);
  return child(member == value_->end() ? kNull : *member, printable(key));
}

std::vector<JsonView> JsonView::items() const {
  if (!value_->is_array()) refuse("an array");
  std::vector<JsonView> result;
  result.reserve(value_->size());
  for (const json& item : *value_) result.push_back(child(item, fmt::format("[{}]", result.size())));
  return result;
}

const std::string& JsonView::text() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get_ref<const std::string&>();
}

std::optional<std::string> JsonView::optional_text() const {
  if (is_null()) return std::nullopt;
  return text();
}

std::string JsonView::text_or(std::string_view fallback) const { return is_null() ? std::string(fallback) : text(); }

bool JsonView::flag() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::optional<bool> JsonView::optional_flag() const {
  if (is_null()) return std::nullopt;
  return flag();
}

std::int64_t JsonView::integer(std::int64_t low, std::int64_t high) const {
  if (is_above(*value_, high)) refuse(fmt::format("at most {}", high));
  if (!value_->is_number_integer() || value_->get<std::int64_t>() < low) {
    refuse(fmt::format("an integer of at least {}", low));
  }
  return value_->get<std::int64_t>();
}

std::optional<std::int64_t> JsonView::optional_integer(std::int64_t low, std::int64_t high) const {
  if (is_null()) return std::nullopt;
  return integer(low, high);
}

double JsonView::number() const {
  if (!value_->is_number()) refuse("a number");
  return value_->get<double>();
}

std::optional<double> JsonView::optional_number() const {
  if (is_null()) return std::nullopt;
  return number();
}

std::string JsonView::place() const { return path_.empty() ? file_ : file_ + ": " + path_; }

void JsonView::fail(Error::Kind kind, const std::string& what) const { throw Error(kind, place() + ": " + what); }

void JsonView::refuse(const std::string& expected) const {
  const std::string is = is_null() ? "missing" : describe(*value_);
  throw Error(Error::bad_file, fmt::format("{}{} is {}, expected {}", place(), path_.empty() ? ":" : "", is, expected));
}

}  // namespace qpn8
