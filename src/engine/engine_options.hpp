#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"

namespace qpn8 {

/// Parses KEY=VALUE texts as engines of this field do: dashes in keys become underscores, the last of equal keys wins,
/// and a value is true/false/none (any case), an integer, a number, JSON if it starts with [ or {, else text.
/// Error::bad_argument names the text that has no key, no "=", or broken JSON.
nlohmann::ordered_json parse_engine_args(std::span<const std::string> args);

/// How an engine is set up. Every field has an engine argument; the table in engine_options.cpp is the one list of
/// them.
struct EngineOptions {
  std::string device = "auto";         ///< "cpu", "cuda" or "auto"
  int threads = 0;                     ///< 0: one a processor
  int tp = 1;                          ///< tensor-parallel ranks
  int pp = 1;                          ///< pipeline stages
  std::optional<std::string> qpn8;     ///< "auto", "on", "off" or "require"; absent: the environment decides
  std::vector<std::string> contracts;  ///< files, added to the shipped ones; its key is `contract`, as its flag is
  DType kv_dtype = DType::f16;         ///< f16 or f32
  std::int64_t max_model_len = 0;      ///< tokens a sequence; 0: what the config says
  int max_num_seqs = 1;                ///< sequences decoded together
  std::int64_t prefill_chunk = 512;    ///< most tokens a prefill pass
  std::string cpu_isa;                 ///< force "avx512", "avx2", "neon" or "portable"; empty: the best there is

  /// Applies parsed arguments in order. Error::bad_argument names an unknown key and lists the known ones, or a value
  /// of the wrong type and says what it should be.
  void apply(const nlohmann::ordered_json& args);

  /// Applies one argument; `shown_as` is the culprit in messages ("--threads" where it came from a flag).
  void set(std::string_view key, const nlohmann::ordered_json& value, std::string_view shown_as);

  /// All options with their values, as a result file records them.
  nlohmann::ordered_json to_json() const;
};

/// A row of the list of engine arguments, for help texts.
struct EngineOptionDoc {
  std::string_view key;
  std::string_view expected;  ///< "an integer from 1 to 8"
  std::string_view meaning;
};

/// Every engine argument, in the order of EngineOptions.
std::vector<EngineOptionDoc> engine_option_docs();

}  // namespace qpn8
