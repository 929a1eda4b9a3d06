#include "text/decoder.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "text/component.hpp"
#include "text/decode_stages.hpp"

namespace qpn8::text {
namespace {

std::string parse_character(const JsonView& view) {
  const std::string& text = view.text();
  if (text.empty() || code_point_at(text, 0).size != text.size()) {
    view.fail("is " + in_quotes(text) + "; one character is needed");
  }
  return text;
}

std::size_t parse_count(const JsonView& view) {
  return static_cast<std::size_t>(view.integer(0, std::numeric_limits<std::int32_t>::max()));
}

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

DecodeStream::DecodeStream() : text_(std::make_unique<std::string>()) {
  stages_.push_back(std::make_unique<CollectStage>(*text_));
}

DecodeStream::~DecodeStream() = default;
DecodeStream::DecodeStream(DecodeStream&&) noexcept = default;
DecodeStream& DecodeStream::operator=(DecodeStream&&) noexcept = default;

void DecodeStream::push(std::string_view token) {
  stages_.back()->append(token);
  stages_.back()->end_token();
}

void DecodeStream::finish() { stages_.back()->finish(); }

std::string DecodeStream::take() { return std::exchange(*text_, {}); }

Decoder Decoder::parse(const JsonView& view) {
  Decoder decoder;
  if (view.is_null()) decoder.steps_.emplace_back(Join{});
  for_each_component(view, "decoders", [&](std::string_view type, const JsonView& component) {
    decoder.steps_.push_back(parse_step(type, component));
  });
  return decoder;
}

Decoder::Step Decoder::parse_step(std::string_view type, const JsonView& view) {
  if (type == "ByteLevel") return ByteLevel{};
  if (type == "ByteFallback") return ByteFallback{};
  if (type == "Fuse") return Fuse{};
  if (type == "Replace") return Replace{Pattern::parse(view["pattern"]), view["content"].text()};
  if (type == "Strip") {
    return Strip{parse_character(view["content"]), parse_count(view["start"]), parse_count(view["stop"])};
  }
  if (type == "Metaspace") return Metaspace::parse(view);
  refuse_component(view, type);
}

DecodeStream Decoder::open() const {
  DecodeStream stream;
  std::for_each(steps_.rbegin(), steps_.rend(), [&](const Step& step) { add_stages(step, stream); });
  return stream;
}

/// Puts a step's stages before those that the stream has.
void Decoder::add_stages(const Step& step, DecodeStream& stream) {
  const auto add = [&]<class Stage>(std::type_identity<Stage>, const auto&... settings) {
    DecodeStage& next = *stream.stages_.back();
    stream.stages_.push_back(std::make_unique<Stage>(settings..., next));
  };
  std::visit(Overloaded{
                 [&](const Join&) { add(std::type_identity<JoinStage>()); },
                 [&](const ByteLevel&) { add(std::type_identity<ByteLevelStage>()); },
                 [&](const ByteFallback&) { add(std::type_identity<ByteFallbackStage>()); },
                 [&](const Fuse&) { add(std::type_identity<FuseStage>()); },
                 [&](const Replace& s) { add(std::type_identity<ReplaceStage>(), s.pattern, s.content); },
                 [&](const Strip& s) {
                   add(std::type_identity<StripEndStage>(), s.content, s.stop);
                   add(std::type_identity<StripStartStage>(), s.content, s.start);
                 },
                 [&](const Metaspace& s) { add(std::type_identity<MetaspaceStage>(), s); },
             },
             step);
}

}  // namespace qpn8::text
