#include "text/jinja/template.hpp"

#include <fmt/format.h>

#include <limits>

#include "text/jinja/interpreter.hpp"
#include "text/jinja/parser.hpp"
#include "text/jinja/unicode.hpp"

namespace qpn8::jinja {
namespace {

using Json = nlohmann::ordered_json;

Value text_from_json(Budget& budget, const std::string& text) {
  if (!is_valid_utf8(text)) throw TemplateError("a text among the variables is not UTF-8");
  return make_text(budget, text);
}

}  // namespace

Value from_json(Budget& budget, const Json& json) {
  const Nesting nesting(budget);
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return text_from_json(budget, json.get_ref<const std::string&>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw TemplateError(fmt::format("the integer {} among the variables does not fit into 64 bits", json.dump()));
      }
      return json.get<std::int64_t>();
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(from_json(budget, item));
      return make_list(budget, std::move(items));
    }
    case Json::value_t::object: {
      auto dict = std::make_shared<Dict>(budget);
      for (const auto& [key, value] : json.items()) {
        dict->set(budget, text_from_json(budget, key), from_json(budget, value));
      }
      return std::shared_ptr<const Dict>(std::move(dict));
    }
    default:
      return {};
  }
}

Template::Template(std::string_view source, const Limits& limits) : constants_(std::make_unique<Budget>(limits)) {
  if (!is_valid_utf8(source)) throw LocatedError("the template is not UTF-8", 1);
  body_ = parse(source, *constants_);
}

std::string Template::render(const Json& variables, const Limits& limits) const {
  if (!variables.is_object()) throw LocatedError("the template's variables are not an object", 1);
  Budget budget(limits);
  int line = 1;
  try {
    const Value values = from_json(budget, variables);
    Interpreter interpreter(budget, values);
    try {
      return interpreter.render(body_);
    } catch (const TemplateError&) {
      line = interpreter.line();
      throw;
    }
  } catch (const TemplateError& error) {
    throw LocatedError(error.what(), line);
  }
}

}  // namespace qpn8::jinja
