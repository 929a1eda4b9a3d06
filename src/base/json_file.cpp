#include "base/json_file.hpp"

#include <type_traits>
#include <utility>
#include <vector>

#include "base/json_events.hpp"
#include "base/mapped_file.hpp"
#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

/// Builds nlohmann's tree of values in `root`.
template <class Json>
class TreeBuilder {
 public:
  explicit TreeBuilder(Json& root) : root_(root) {}

  template <class Value>
  void scalar(Value&& value, JsonPosition& /*position*/) {
    put(std::forward<Value>(value));
  }

  void key(std::string&& name, JsonPosition& /*position*/) {
    auto& members = open_.back()->template get_ref<typename Json::object_t&>();
    if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
      // Not through the map's own emplace(), which looks through all members for the key: the parser has done that.
      static_cast<typename Json::object_t::Container&>(members).emplace_back(std::move(name), nullptr);
      member_ = &members.back().second;
    } else {
      member_ = &members.emplace(std::move(name), nullptr).first->second;
    }
  }

  void open(bool object, JsonPosition& /*position*/) { open_.push_back(put(object ? Json::object() : Json::array())); }

  void close() { open_.pop_back(); }

 private:
  template <class Value>
  Json* put(Value&& value) {
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    if (open_.back()->is_object()) {
      *member_ = std::forward<Value>(value);
      return member_;
    }
    open_.back()->push_back(std::forward<Value>(value));
    return &open_.back()->back();
  }

  Json& root_;
  std::vector<Json*> open_;  // an element is never moved while it is open: its parent grows only after it is closed
  Json* member_ = nullptr;
};

template <class Json>
std::string describe_value(const Json& value) {
  constexpr std::size_t kLongest = 80;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return in_quotes(value.template get_ref<const std::string&>(), kLongest);
  return value.dump();
}

}  // namespace

template <class Json>
Json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits, std::int64_t first_line) {
  Json root;
  TreeBuilder<Json> builder(root);
  parse_json_events(text, name, first_line, limits, builder);
  return root;
}

template <class Json>
Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
  const MappedFile file(path);
  return parse_json<Json>(file.text(), path.string(), limits);
}

template nlohmann::json parse_json(std::string_view, const std::string&, const JsonLimits&, std::int64_t);
template nlohmann::ordered_json parse_json(std::string_view, const std::string&, const JsonLimits&, std::int64_t);
template nlohmann::json read_json_file(const std::filesystem::path&, const JsonLimits&);
template nlohmann::ordered_json read_json_file(const std::filesystem::path&, const JsonLimits&);

std::optional<nlohmann::ordered_json> try_parse_json(std::string_view text, const JsonLimits& limits) {
  try {
    return parse_json<nlohmann::ordered_json>(text, "text", limits);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string describe(const nlohmann::json& value) { return describe_value(value); }
std::string describe(const nlohmann::ordered_json& value) { return describe_value(value); }

std::string json_in_message(const nlohmann::json& value) {
  return printable(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 80);
}

}  // namespace qpn8
