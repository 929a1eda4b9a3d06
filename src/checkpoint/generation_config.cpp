#include "base/directory_entry.hpp"
#include "base/json_file.hpp"
#include "checkpoint/json_reader.hpp"
#include "checkpoint/model_config.hpp"

namespace qpn8 {
namespace {

GenerationConfig generation_config_of(const nlohmann::json& object, const std::filesystem::path& file) {
  const JsonReader reader(object, file.string());
  constexpr double kUnbounded = 1e6;
  GenerationConfig config;
  config.eos_tokens = reader.token_ids("eos_token_id");
  config.temperature = reader.optional_number("temperature", 0, kUnbounded, true);
  config.top_p = reader.optional_number("top_p", 0, 1, true);
  config.top_k = reader.optional_integer("top_k", 0, kMaxConfigInteger);
  config.min_p = reader.optional_number("min_p", 0, 1, true);
  config.repetition_penalty = reader.optional_number("repetition_penalty", 0, kUnbounded, false);
  config.do_sample = reader.optional_boolean("do_sample");
  return config;
}

}  // namespace

GenerationConfig load_generation_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "generation_config.json";
  if (!entry_exists(file)) return {};
  return generation_config_of(read_json_file(file, kConfigLimits), file);
}

GenerationConfig parse_generation_config(const std::string& text, const std::filesystem::path& file) {
  return generation_config_of(parse_json(text, file.string(), kConfigLimits), file);
}

}  // namespace qpn8
