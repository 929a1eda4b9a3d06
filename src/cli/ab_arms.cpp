#include "cli/ab_arms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "engine/engine.hpp"
#include "evidence/endpoint_arm.hpp"
#include "evidence/engine_arm.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cli {
namespace {

using Json = nlohmann::ordered_json;

/// A template may refuse an item; then the item is to be found as well.
std::vector<TokenId> encoded(const ConversationEncoder& encoder, std::span<const ChatMessage> messages,
                             const DatasetItem& item) {
  try {
    return encoder.encode(messages);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("item {}: {}", item.index, error.what()));
  }
}

/// Tells what loads, and ends the loading of a candidate without a projection on QPN8.
LoadObserver candidate_observer() {
  LoadObserver observer = stderr_observer();
  observer.planned = [told = observer.planned](const Plan& plan) {
    told(plan);
    require_qpn8(plan);
  };
  return observer;
}

}  // namespace

ArmLoader::ArmLoader(const Flags& flags, GenerationRequest request)
    : request_(std::move(request)), a_(parse(flags, flags.args_a)), b_(parse(flags, flags.args_b)) {}

ArmLoader::Spec ArmLoader::parse(const Flags& flags, const std::vector<std::string>& own_args) const {
  const Json own = parse_engine_args(own_args);
  if (EndpointOptions::is_endpoint(own)) {
    return {.server = std::make_unique<EndpointArm>(EndpointOptions::parse(own), request_), .front_end = std::nullopt};
  }
  if (flags.model.empty()) {
    throw Error(Error::bad_argument,
                "--model: is missing; an arm without endpoint= is an engine, which needs a folder");
  }
  Json args = flags.common.engine_args();
  args.update(own);  // an arm's own arguments win over those of both
  EngineOptions options;
  options.apply(args);
  return {.server = nullptr, .front_end = FrontEnd(flags.model, options)};
}

Json ArmLoader::Spec::config() const { return server ? server->config() : front_end->options().to_json(); }

std::vector<std::string> ArmLoader::require_items(const std::vector<DatasetItem>& items) const {
  std::vector<std::string> notes;
  for (const auto& [name, spec] : {std::pair("a", &a_), std::pair("b", &b_)}) {
    if (!spec->front_end) continue;
    const ConversationEncoder encoder(*spec->front_end);
    const RequestLimits limits = spec->front_end->limits();
    GenerationRequest request = request_;
    std::size_t cut = 0;
    std::size_t longest = 0;
    for (const DatasetItem& item : items) {
      const std::array<ChatMessage, 1> first = {ChatMessage{"user", item.turns.front()}};
      request.prompt = encoded(encoder, first, item);
      require_valid(request, limits, {.prompt = fmt::format("item {}", item.index), .flags = true});
      longest = std::max(longest, request.prompt.size());
      if (request_.max_tokens > limits.context_length - static_cast<std::int64_t>(request.prompt.size())) ++cut;
    }
    if (cut == 0) continue;
    notes.push_back(
        fmt::format("the context of arm {}, {} tokens, ends an output of {} of {} items before --max-tokens {}; it "
                    "leaves the longest of them {}",
                    name, limits.context_length, cut, items.size(), request_.max_tokens,
                    limits.context_length - static_cast<std::int64_t>(longest)));
  }
  return notes;
}

bool are_alike(const Arms& arms) {
  Json a = arms.a->config();
  Json b = arms.b->config();
  if (a == b) return true;
  const std::optional<Json> plan_a = arms.a->plan();
  const std::optional<Json> plan_b = arms.b->plan();
  if (!plan_a || !plan_b) return false;
  for (const char* key : {"qpn8", "contract"}) {
    a.erase(key);
    b.erase(key);
  }
  return a == b && plan_a->at("projections") == plan_b->at("projections");
}

Arms ArmLoader::load() {
  Arms arms = {.a = std::move(a_.server), .b = std::move(b_.server)};
  const Json options_a = arms.a ? Json() : a_.config();
  const Json options_b = arms.b ? Json() : b_.config();
  std::shared_ptr<Engine> candidate;
  if (!arms.b) {
    candidate = std::make_shared<Engine>(std::move(*b_.front_end), candidate_observer());
    arms.b = std::make_unique<EngineArm>(candidate, request_);
  }
  if (!arms.a) {
    const bool shared = candidate && options_a == options_b;
    auto engine = shared ? candidate : std::make_shared<Engine>(std::move(*a_.front_end), stderr_observer());
    arms.a = std::make_unique<EngineArm>(std::move(engine), request_);
  }
  return arms;
}

}  // namespace qpn8::cli
