#include "engine/engine_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

struct Option {
  std::string_view key;
  std::string_view expected;
  std::string_view meaning;
  bool (*set)(EngineOptions& options, const Json& value);  ///< false if the value is not what `expected` says
  Json (*get)(const EngineOptions& options);
};

template <class Integer>
bool set_integer(Integer& target, const Json& value, std::int64_t least, std::int64_t most) {
  if (!value.is_number_integer()) return false;
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) return false;
  target = static_cast<Integer>(number);
  return true;
}

bool set_choice(std::string& target, const Json& value, std::initializer_list<std::string_view> choices) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  if (std::find(choices.begin(), choices.end(), text) == choices.end()) return false;
  target = text;
  return true;
}

bool set_qpn8(EngineOptions& options, const Json& value) {
  if (value.is_null()) {
    options.qpn8.reset();
    return true;
  }
  std::string mode;
  if (!set_choice(mode, value, {"auto", "on", "off", "require"})) return false;
  options.qpn8 = mode;
  return true;
}

bool set_contracts(EngineOptions& options, const Json& value) {
  const auto is_file = [](const Json& element) {
    return element.is_string() && !element.get_ref<const std::string&>().empty();
  };
  if (is_file(value)) {
    options.contracts = {value.get<std::string>()};
    return true;
  }
  const bool files = value.is_array() && std::all_of(value.begin(), value.end(), is_file);
  if (files) options.contracts = value.get<std::vector<std::string>>();
  return files;
}

bool set_kv_dtype(EngineOptions& options, const Json& value) {
  std::string name;
  if (!set_choice(name, value, {"float16", "float32"})) return false;
  options.kv_dtype = name == "float16" ? DType::f16 : DType::f32;
  return true;
}

bool set_cpu_isa(EngineOptions& options, const Json& value) {
  if (value.is_null()) {
    options.cpu_isa.clear();
    return true;
  }
  return set_choice(options.cpu_isa, value, {"avx512", "avx2", "neon", "portable"});
}

constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;

constexpr std::array kOptions = {
    Option{"device", R"("auto", "cpu" or "cuda")", "where to run; auto is the best there is",
           [](EngineOptions& o, const Json& v) {
             return set_choice(o.device, v, {"auto", "cpu", "cuda"});
           },
           [](const EngineOptions& o) -> Json { return o.device; }},
    Option{"threads", "an integer from 0 to 1024", "threads of the CPU backend; 0 is one a processor",
           [](EngineOptions& o, const Json& v) { return set_integer(o.threads, v, 0, 1024); },
           [](const EngineOptions& o) -> Json { return o.threads; }},
    Option{"tp", "an integer from 1 to 1024", "tensor-parallel ranks",
           [](EngineOptions& o, const Json& v) { return set_integer(o.tp, v, 1, 1024); },
           [](const EngineOptions& o) -> Json { return o.tp; }},
    Option{"pp", "an integer from 1 to 1024", "pipeline stages",
           [](EngineOptions& o, const Json& v) { return set_integer(o.pp, v, 1, 1024); },
           [](const EngineOptions& o) -> Json { return o.pp; }},
    Option{"qpn8", R"("auto", "on", "off" or "require")",
           "the QPN8 route; require makes a fallback that no contract foresaw an error", set_qpn8,
           [](const EngineOptions& o) -> Json { return o.qpn8 ? Json(*o.qpn8) : Json(); }},
    Option{"contract", "a file, or a list of files", "contracts beside the shipped ones", set_contracts,
           [](const EngineOptions& o) -> Json { return o.contracts; }},
    Option{"kv_dtype", R"("float16" or "float32")", "precision of cached keys and values", set_kv_dtype,
           [](const EngineOptions& o) -> Json { return o.kv_dtype == DType::f16 ? "float16" : "float32"; }},
    Option{"max_model_len", "an integer from 0 to 16777216", "tokens a sequence; 0 is what the model's config says",
           [](EngineOptions& o, const Json& v) { return set_integer(o.max_model_len, v, 0, kMostTokens); },
           [](const EngineOptions& o) -> Json { return o.max_model_len; }},
    Option{"max_num_seqs", "an integer from 1 to 256", "sequences decoded together",
           [](EngineOptions& o, const Json& v) { return set_integer(o.max_num_seqs, v, 1, 256); },
           [](const EngineOptions& o) -> Json { return o.max_num_seqs; }},
    Option{"prefill_chunk", "an integer from 1 to 65536", "most tokens a prefill pass",
           [](EngineOptions& o, const Json& v) { return set_integer(o.prefill_chunk, v, 1, 65536); },
           [](const EngineOptions& o) -> Json { return o.prefill_chunk; }},
    Option{"cpu_isa", R"("avx512", "avx2", "neon" or "portable")", "force the instruction set of the CPU kernels",
           set_cpu_isa, [](const EngineOptions& o) -> Json { return o.cpu_isa.empty() ? Json() : Json(o.cpu_isa); }},
};

std::string known_keys() {
  std::string keys;
  for (const Option& option : kOptions) keys.append(keys.empty() ? "" : ", ").append(option.key);
  return keys;
}

}  // namespace

void EngineOptions::set(std::string_view key, const nlohmann::ordered_json& value, std::string_view shown_as) {
  const auto* option =
      std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& candidate) { return candidate.key == key; });
  if (option == kOptions.end()) {
    throw Error(Error::bad_argument, fmt::format("{}: no such engine argument; known: {}", shown_as, known_keys()));
  }
  if (!option->set(*this, value)) {
    throw Error(Error::bad_argument, fmt::format("{}: {} is not {}", shown_as, describe(value), option->expected));
  }
}

void EngineOptions::apply(const nlohmann::ordered_json& args) {
  for (const auto& [key, value] : args.items()) set(key, value, "engine argument " + in_quotes(key));
}

nlohmann::ordered_json EngineOptions::to_json() const {
  Json json = Json::object();
  for (const Option& option : kOptions) json[std::string(option.key)] = option.get(*this);
  return json;
}

std::vector<EngineOptionDoc> engine_option_docs() {
  std::vector<EngineOptionDoc> docs;
  docs.reserve(kOptions.size());
  for (const Option& option : kOptions) docs.push_back({option.key, option.expected, option.meaning});
  return docs;
}

}  // namespace qpn8
