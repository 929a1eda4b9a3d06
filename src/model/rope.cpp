#include "model/rope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

/// The `rope_parameters` of one config, with messages that name the key.
class Parameters {
 public:
  explicit Parameters(const ModelConfig& config) : config_(config) {}

  double positive(const char* key) const {
    const auto found = config_.rope.parameters.find(key);
    if (found == config_.rope.parameters.end()) fail(key, "is missing");
    return checked(key, *found);
  }

  double at_least_one(const char* key) const {
    const double number = positive(key);
    if (number < 1.0) fail(key, fmt::format("is {}, expected at least 1", number));
    return number;
  }

  double positive_or(const char* key, double fallback) const {
    const auto found = config_.rope.parameters.find(key);
    if (found == config_.rope.parameters.end() || found->is_null()) return fallback;
    return checked(key, *found);
  }

  bool has(const char* key) const {
    const auto found = config_.rope.parameters.find(key);
    return found != config_.rope.parameters.end() && !found->is_null();
  }

  bool flag_or(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    const nlohmann::json& value = config_.rope.parameters.at(key);
    if (!value.is_boolean()) fail(key, fmt::format("is {}, expected true or false", json_in_message(value)));
    return value.get<bool>();
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw Error(Error::bad_file, fmt::format("{}: rope_parameters.{} {} (rope_type {})", config_.file.string(), key,
                                             what, printable(config_.rope.type)));
  }

 private:
  double checked(const char* key, const nlohmann::json& value) const {
    const double number = value.is_number() ? value.get<double>() : 0.0;
    if (!(number > 0.0) || !std::isfinite(number)) {
      fail(key, fmt::format("is {}, expected a positive number", json_in_message(value)));
    }
    return number;
  }

  const ModelConfig& config_;
};

std::int64_t rotary_dimensions(const ModelConfig& config) {
  const auto dimensions =
      static_cast<std::int64_t>(static_cast<double>(config.head_dim) * config.rope.partial_rotary_factor);
  if (dimensions <= 0 || dimensions % 2 != 0 || dimensions > config.head_dim) {
    throw Error(Error::bad_file,
                fmt::format("{}: {} rotary dimensions of a head of {}, expected an even number up to the head's",
                            config.file.string(), dimensions, config.head_dim));
  }
  return dimensions;
}

std::vector<double> base_frequencies(const ModelConfig& config) {
  const std::int64_t dimensions = rotary_dimensions(config);
  std::vector<double> frequencies(static_cast<std::size_t>(dimensions / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(config.rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(dimensions));
  }
  return frequencies;
}

/// Parameters may each be in range and together give an angle, at the last position, that FP32 does not hold: its
/// cosine would be NaN, and every logit with it.
RopeFrequencies rounded(const ModelConfig& config, const std::vector<double>& frequencies, double scale) {
  const auto positions = static_cast<double>(std::max<std::int64_t>(config.max_positions, 1));
  constexpr double kLargest = std::numeric_limits<float>::max();
  const auto usable = [&](double frequency) { return frequency >= 0.0 && frequency * positions <= kLargest; };
  if (!std::all_of(frequencies.begin(), frequencies.end(), usable) || !(scale > 0.0 && scale <= kLargest)) {
    throw Error(Error::bad_file,
                fmt::format("{}: rope_theta {} and rope_parameters {} (rope_type {}) give a rotation that is not "
                            "finite, expected parameters with finite frequencies",
                            config.file.string(), config.rope.theta, json_in_message(config.rope.parameters),
                            printable(config.rope.type)));
  }
  RopeFrequencies result;
  result.frequencies.assign(frequencies.begin(), frequencies.end());
  result.scale = static_cast<float>(scale);
  return result;
}

RopeFrequencies default_rope(const ModelConfig& config) { return rounded(config, base_frequencies(config), 1.0); }

RopeFrequencies linear_rope(const ModelConfig& config) {
  const double factor = Parameters(config).at_least_one("factor");
  std::vector<double> frequencies = base_frequencies(config);
  for (double& frequency : frequencies) frequency /= factor;
  return rounded(config, frequencies, 1.0);
}

// Long wavelengths are interpolated by `factor`, short ones kept, those between blended linearly in 1 / wavelength.
RopeFrequencies llama3_rope(const ModelConfig& config) {
  const Parameters parameters(config);
  const double factor = parameters.at_least_one("factor");
  const double low = parameters.positive("low_freq_factor");
  const double high = parameters.positive("high_freq_factor");
  const double original = parameters.at_least_one("original_max_position_embeddings");
  if (high <= low) parameters.fail("high_freq_factor", "is not above low_freq_factor");
  std::vector<double> frequencies = base_frequencies(config);
  for (double& frequency : frequencies) {
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    const double blend = std::clamp((original / wavelength - low) / (high - low), 0.0, 1.0);
    frequency = (1.0 - blend) * frequency / factor + blend * frequency;
  }
  return rounded(config, frequencies, 1.0);
}

double yarn_scale(const Parameters& parameters, double factor) {
  const auto growth = [factor](double mscale) { return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; };
  if (parameters.has("attention_factor")) return parameters.positive("attention_factor");
  if (parameters.has("mscale") && parameters.has("mscale_all_dim")) {
    return growth(parameters.positive("mscale")) / growth(parameters.positive("mscale_all_dim"));
  }
  return growth(1.0);
}

RopeFrequencies yarn_rope(const ModelConfig& config) {
  const Parameters parameters(config);
  const double factor = parameters.at_least_one("factor");
  const char* const kOriginal = "original_max_position_embeddings";
  const double original =
      parameters.has(kOriginal) ? parameters.at_least_one(kOriginal) : static_cast<double>(config.max_positions);
  // Frequencies must fall for there to be a fast and a slow dimension.
  if (config.rope.theta <= 1.0) {
    parameters.fail("rope_theta", fmt::format("is {}, expected a number above 1", config.rope.theta));
  }
  const auto dimensions = static_cast<double>(rotary_dimensions(config));
  // The dimension whose wavelength fits `rotations` times into the original context.
  const auto dimension_of = [&](double rotations) {
    return dimensions * std::log(original / (rotations * 2.0 * std::numbers::pi)) / (2.0 * std::log(config.rope.theta));
  };
  double low = dimension_of(parameters.positive_or("beta_fast", 32.0));
  double high = dimension_of(parameters.positive_or("beta_slow", 1.0));
  if (parameters.flag_or("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dimensions - 1.0);
  if (low == high) high += 0.001;
  std::vector<double> frequencies = base_frequencies(config);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / factor * ramp + frequencies[i] * (1.0 - ramp);
  }
  return rounded(config, frequencies, yarn_scale(parameters, factor));
}

struct RopeType {
  const char* name;
  RopeFrequencies (*compute)(const ModelConfig&);
};

constexpr std::array kRopeTypes = {
    RopeType{"default", default_rope},
    RopeType{"linear", linear_rope},
    RopeType{"llama3", llama3_rope},
    RopeType{"yarn", yarn_rope},
};

}  // namespace

RopeFrequencies rope_frequencies(const ModelConfig& config) {
  for (const RopeType& type : kRopeTypes) {
    if (config.rope.type == type.name) return type.compute(config);
  }
  throw Error(Error::unsupported,
              fmt::format("{}: rope_type \"{}\" is not supported; known: default, linear, llama3, yarn",
                          config.file.string(), printable(config.rope.type)));
}

}  // namespace qpn8
