#include "engine/generation_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(Error::bad_argument, what); }

void require_no_more_than(std::int64_t most, std::span<const TokenId> ids, const RequestLimits& limits,
                          const RequestNames& names) {
  const auto count = static_cast<std::int64_t>(ids.size());
  if (count <= most) return;
  refuse(fmt::format("{}: {} tokens in a context of {}; expected at most {}", names.prompt, count,
                     limits.context_length, most));
}

}  // namespace

std::string RequestNames::of(std::string_view option) const {
  if (!flags) return std::string(option);
  std::string flag = "--" + std::string(option);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

void SamplingOptions::validate(const RequestNames& names) const {
  const auto require = [&](bool holds, std::string_view option, double value, const char* expected) {
    if (!holds) refuse(fmt::format("{} {}: expected {}", names.of(option), value, expected));
  };
  require(std::isfinite(temperature) && temperature >= 0, "temperature", temperature, "a finite number of at least 0");
  require(top_k >= 0, "top_k", top_k, "at least 0 (0 keeps all tokens)");
  require(top_p > 0 && top_p <= 1, "top_p", top_p, "above 0 and at most 1");
  require(min_p >= 0 && min_p < 1, "min_p", min_p, "at least 0 and below 1");
  require(std::isfinite(repetition_penalty) && repetition_penalty > 0, "repetition_penalty", repetition_penalty,
          "a finite number above 0");
}

void GenerationRequest::validate(const RequestNames& names) const {
  sampling.validate(names);
  if (max_tokens < 1) refuse(fmt::format("{} {}: expected at least 1", names.of("max_tokens"), max_tokens));
  if (std::any_of(stop.begin(), stop.end(), [](const std::string& text) { return text.empty(); })) {
    refuse(names.of("stop") + ": is empty; expected a text that ends the output");
  }
}

void require_prompt(std::span<const TokenId> ids, const RequestLimits& limits, const RequestNames& names) {
  if (ids.empty()) refuse(names.prompt + ": is empty; expected at least one token");
  require_no_more_than(limits.context_length, ids, limits, names);
  for (const TokenId id : ids) {
    if (id >= 0 && id < limits.vocabulary) continue;
    refuse(fmt::format("{}: token {} is outside the model's vocabulary; expected 0 to {}", names.prompt, id,
                       limits.vocabulary - 1));
  }
}

void require_valid(const GenerationRequest& request, const RequestLimits& limits, const RequestNames& names) {
  request.validate(names);
  if (!request.stop.empty() && !limits.has_tokenizer) {
    refuse(names.of("stop") + ": the model has no tokenizer to find texts with; expected a folder with tokenizer.json");
  }
  require_no_more_than(limits.context_length - 1, request.prompt, limits, names);
  require_prompt(request.prompt, limits, names);
}

}  // namespace qpn8
