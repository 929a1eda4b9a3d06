#include "text/normalizer.hpp"

#include <utility>

#include "base/utf8.hpp"
#include "text/component.hpp"

namespace qpn8::text {

Normalizer Normalizer::parse(const JsonView& view) {
  Normalizer normalizer;
  for_each_component(view, "normalizers", [&](std::string_view type, const JsonView& component) {
    normalizer.steps_.push_back(parse_step(type, component));
  });
  return normalizer;
}

Normalizer::Step Normalizer::parse_step(std::string_view type, const JsonView& view) {
  if (type == "NFC") return Normalize{NormalForm::nfc};
  if (type == "NFD") return Normalize{NormalForm::nfd};
  if (type == "NFKC") return Normalize{NormalForm::nfkc};
  if (type == "NFKD") return Normalize{NormalForm::nfkd};
  if (type == "Lowercase") return Lowercase{};
  if (type == "Strip") return Strip{view["strip_left"].flag_or(true), view["strip_right"].flag_or(true)};
  if (type == "StripAccents") return StripAccents{};
  if (type == "Prepend") return Prepend{view["prepend"].text()};
  if (type == "Replace") return Replace{Pattern::parse(view["pattern"]), view["content"].text()};
  refuse_component(view, type);
}

void Normalizer::apply(Segment& segment) const {
  for (const Step& step : steps_) {
    std::visit([&](const auto& s) { s.apply(segment); }, step);
  }
}

void Normalizer::Normalize::apply(Segment& segment) const { segment.text = normalize(segment.text, form); }

void Normalizer::Lowercase::apply(Segment& segment) { segment.text = to_lower(segment.text); }

void Normalizer::Strip::apply(Segment& segment) const {
  const std::string& text = segment.text;
  std::size_t begin = 0;
  std::size_t end = text.size();
  while (left && begin < end && is_space(code_point_at(text, begin).value)) begin += code_point_at(text, begin).size;
  while (right && begin < end && is_space(code_point_before(text, end).value)) end -= code_point_before(text, end).size;
  segment.starts_input = segment.starts_input && begin == 0;
  segment.text = text.substr(begin, end - begin);
}

void Normalizer::StripAccents::apply(Segment& segment) {
  const std::string text = std::exchange(segment.text, {});
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (!is_mark(point.value)) {
      segment.text += text.substr(at, point.size);
    } else if (at == 0) {
      segment.starts_input = false;
    }
    at += point.size;
  }
}

void Normalizer::Prepend::apply(Segment& segment) const {
  if (!segment.text.empty()) segment.text.insert(0, content);
}

void Normalizer::Replace::apply(Segment& segment) const {
  const std::vector<Range> matches = pattern.find_all(segment.text);
  if (matches.empty()) return;
  // The reference takes what replaces several characters for the last of them, so it no longer starts the text.
  if (matches.front().begin == 0 && matches.front().end > 0) {
    const bool one_for_one = matches.front().end == code_point_at(segment.text, 0).size && !content.empty();
    segment.starts_input = segment.starts_input && one_for_one;
  }
  segment.text = replace(segment.text, matches, content);
}

}  // namespace qpn8::text
