#include "text/jinja/globals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "text/jinja/operators.hpp"
#include "text/jinja/repr.hpp"

namespace qpn8::jinja {
namespace {

// What dict(...) and namespace(...) are made of: a dict or pairs, and keywords.
template <class Set>
void read_items(Runtime& runtime, std::string_view function, const Arguments& arguments, Set set) {
  Budget& budget = runtime.budget();
  if (arguments.positional.size() > 1) {
    throw TemplateError(fmt::format("{} expected at most 1 argument, got {}", function, arguments.positional.size()));
  }
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (const Dict* dict = source.dict()) {
      for (const auto& [key, value] : dict->entries()) set(key, value);
    } else {
      ItemSource pairs(budget, source);
      while (const auto pair = pairs.next()) {
        std::vector<Value> parts = items_of(budget, *pair);
        if (parts.size() != 2) {
          throw TemplateError(fmt::format("{}: an element has {} items, 2 are needed", function, parts.size()));
        }
        set(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.keywords) set(make_text(budget, name), value);
}

Value make_dict(Runtime& runtime, const Arguments& arguments) {
  auto dict = std::make_shared<Dict>(runtime.budget());
  read_items(runtime, "dict", arguments,
             [&](const Value& key, const Value& value) { dict->set(runtime.budget(), key, value); });
  return std::shared_ptr<const Dict>(std::move(dict));
}

Value make_namespace(Runtime& runtime, const Arguments& arguments) {
  auto result = std::make_shared<Namespace>(runtime.budget());
  runtime.adopt(result);
  read_items(runtime, "namespace", arguments,
             [&](const Value& key, const Value& value) { result->set(runtime.budget(), key, value); });
  return std::shared_ptr<Object>(std::move(result));
}

Value range(Runtime& runtime, const Arguments& arguments) {
  const BoundArguments bound("range()", arguments, {"start", "stop", "step"}, 1);
  if (!bound.has(1)) return make_range(runtime.budget(), 0, to_index(bound[0]), 1);
  return make_range(runtime.budget(), to_index(bound[0]), to_index(bound[1]), bound.integer(2, 1));
}

class Cycler final : public Object, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(Value items) : items_(std::move(items)) {}

  std::string_view type_name() const override { return "Cycler"; }
  std::string_view qualified_name() const override { return "jinja2.utils.Cycler"; }
  void append_repr(TextBuilder& out) override { out.append("<jinja2.utils.Cycler object>"); }
  int depth() const override { return items_.depth(); }
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;

  Value current() const { return items_.sequence()->items[position_]; }
  Value next() {
    Value value = current();
    position_ = (position_ + 1) % items_.sequence()->items.size();
    return value;
  }
  void reset() { position_ = 0; }

 private:
  Value items_;
  std::size_t position_ = 0;
};

std::optional<Value> Cycler::attribute(Runtime& /*runtime*/, std::string_view name) {
  if (name == "current") return current();
  if (name != "next" && name != "reset") return std::nullopt;
  return make_function(
      std::string(name),
      [self = shared_from_this(), is_next = name == "next"](Runtime& /*runtime*/, const Arguments& arguments) {
        refuse_arguments("cycler", arguments);
        if (is_next) return self->next();
        self->reset();
        return Value();
      },
      depth());
}

Value make_cycler(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.empty()) throw TemplateError("at least one item has to be provided");
  return std::shared_ptr<Object>(std::make_shared<Cycler>(make_tuple(runtime.budget(), arguments.positional)));
}

// Gives nothing when it is called first, and the separator from then on.
Value make_joiner(Runtime& runtime, const Arguments& arguments) {
  const BoundArguments bound("joiner()", arguments, {"sep"});
  Value separator = bound.has(0) ? bound[0] : make_text(runtime.budget(), ", ");
  const int depth = separator.depth();
  auto used = std::make_shared<bool>(false);
  return make_function(
      "joiner",
      [separator = std::move(separator), used = std::move(used)](Runtime& caller, const Arguments& given) {
        refuse_arguments("joiner", given);
        return std::exchange(*used, true) ? separator : make_text(caller.budget(), "");
      },
      depth);
}

Value raise_exception(Runtime& runtime, const Arguments& arguments) {
  const BoundArguments bound("raise_exception()", arguments, {"message"}, 1);
  throw TemplateError(to_str(runtime.budget(), bound[0]));
}

Value strftime_now(Runtime& runtime, const Arguments& arguments) {
  const BoundArguments bound("strftime_now()", arguments, {"format"}, 1);
  const std::string_view given = to_text(bound[0], "strftime_now() argument 1");
  if (given.find('\0') != std::string_view::npos) throw TemplateError("strftime_now(): embedded null character");
  // With a mark at the end, so that an empty result differs from one that does not fit.
  const std::string format = std::string(given) + "|";
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 4096> buffer{};
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &local);
  if (size == 0) throw TemplateError(fmt::format("strftime_now(): the result has more than {} bytes", buffer.size()));
  return make_text(runtime.budget(), std::string(buffer.data(), size - 1));
}

struct Global {
  std::string_view name;
  Value (*function)(Runtime&, const Arguments&);
};
constexpr std::array<Global, 7> kGlobals = {{{"cycler", make_cycler},
                                             {"dict", make_dict},
                                             {"joiner", make_joiner},
                                             {"namespace", make_namespace},
                                             {"raise_exception", raise_exception},
                                             {"range", range},
                                             {"strftime_now", strftime_now}}};

}  // namespace

void Namespace::append_repr(TextBuilder& out) {
  out.append("<Namespace {");
  bool first = true;
  for (const auto& [key, value] : attributes_.entries()) {
    if (!first) out.append(", ");
    first = false;
    jinja::append_repr(out, key);
    out.append(": ");
    jinja::append_repr(out, value);
  }
  out.append("}>");
}

std::optional<Value> Namespace::attribute(Runtime& /*runtime*/, std::string_view name) {
  const Value* found = attributes_.find(name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<Value> find_global(std::string_view name) {
  const auto* found =
      std::find_if(kGlobals.begin(), kGlobals.end(), [name](const Global& global) { return global.name == name; });
  if (found == kGlobals.end()) return std::nullopt;
  return make_function(std::string(name), found->function);
}

}  // namespace qpn8::jinja
