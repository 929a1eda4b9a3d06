#include "text/pre_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "text/byte_codes.hpp"
#include "text/component.hpp"
#include "text/unicode.hpp"

namespace qpn8::text {
namespace {

/// GPT-2's words, which ByteLevel splits by where use_regex is on: contractions, letters, digits and other symbols
/// each with a space before them, and runs of white space.
constexpr std::string_view kByteLevelWords =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct BehaviorName {
  std::string_view name;
  SplitBehavior behavior;
};
constexpr auto kBehaviorNames = std::to_array<BehaviorName>({
    {"Isolated", SplitBehavior::isolated},
    {"Removed", SplitBehavior::removed},
    {"MergedWithPrevious", SplitBehavior::merged_with_previous},
    {"MergedWithNext", SplitBehavior::merged_with_next},
    {"Contiguous", SplitBehavior::contiguous},
});

SplitBehavior parse_behavior(const JsonView& view) {
  for (const BehaviorName& known : kBehaviorNames) {
    if (known.name == view.text()) return known.behavior;
  }
  view.fail("is " + in_quotes(view.text()) +
            "; Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous is needed");
}

/// Appends the parts of a segment that the ranges name.
void append_words(const Segment& segment, const std::vector<Range>& ranges, std::vector<Segment>& words) {
  for (const Range& range : ranges) {
    words.push_back(
        {segment.text.substr(range.begin, range.end - range.begin), segment.starts_input && range.begin == 0});
  }
}

/// Each numeric character as a match by itself.
std::vector<Part> numeric_parts(std::string_view text) {
  std::vector<Range> matches;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (is_numeric(point.value)) matches.push_back({at, at + point.size});
    at += point.size;
  }
  return partition(text.size(), matches);
}

}  // namespace

std::vector<Range> split(const std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<Range> ranges;
  ranges.reserve(parts.size());
  bool previous_is_match = false;
  const auto add = [&](const Part& part, bool joins) {
    if (joins && !ranges.empty()) {
      ranges.back() = {std::min(ranges.back().begin, part.range.begin), std::max(ranges.back().end, part.range.end)};
    } else {
      ranges.push_back(part.range);
    }
    previous_is_match = part.is_match;
  };
  // Of several matches in a row, only the one that touches the text it is merged with joins it.
  const auto merge = [&](const Part& part) { add(part, part.is_match && !previous_is_match); };
  switch (behavior) {
    case SplitBehavior::isolated:
      for (const Part& part : parts) add(part, false);
      break;
    case SplitBehavior::removed:
      for (const Part& part : parts) {
        if (!part.is_match) add(part, false);
      }
      break;
    case SplitBehavior::contiguous:
      for (const Part& part : parts) add(part, part.is_match == previous_is_match);
      break;
    case SplitBehavior::merged_with_previous:
      std::for_each(parts.begin(), parts.end(), merge);
      break;
    case SplitBehavior::merged_with_next:
      std::for_each(parts.rbegin(), parts.rend(), merge);
      std::reverse(ranges.begin(), ranges.end());
      break;
  }
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(), [](const Range& r) { return r.begin == r.end; }),
               ranges.end());
  return ranges;
}

PreTokenizer PreTokenizer::parse(const JsonView& view) {
  PreTokenizer pre_tokenizer;
  for_each_component(view, "pretokenizers", [&](std::string_view type, const JsonView& component) {
    pre_tokenizer.steps_.push_back(parse_step(type, component));
  });
  return pre_tokenizer;
}

PreTokenizer::Step PreTokenizer::parse_step(std::string_view type, const JsonView& view) {
  if (type == "Split") {
    return Split{Pattern::parse(view["pattern"]), parse_behavior(view["behavior"]), view["invert"].flag_or(false)};
  }
  if (type == "Digits") return Digits{view["individual_digits"].flag_or(false)};
  if (type == "ByteLevel") {
    ByteLevel step{view["add_prefix_space"].flag_or(true), std::nullopt};
    if (view["use_regex"].flag_or(true)) step.words.emplace(kByteLevelWords, view.place());
    return step;
  }
  if (type == "Metaspace") return MetaspaceSplit{Metaspace::parse(view), view["split"].flag_or(true)};
  refuse_component(view, type);
}

std::vector<Segment> PreTokenizer::apply(Segment segment) const {
  std::vector<Segment> segments;
  if (!segment.text.empty()) segments.push_back(std::move(segment));
  for (const Step& step : steps_) {
    std::vector<Segment> words;
    words.reserve(segments.size());
    for (Segment& one : segments) {
      std::visit([&](const auto& s) { s.apply(std::move(one), words); }, step);
    }
    segments = std::move(words);
  }
  return segments;
}

void PreTokenizer::Split::apply(const Segment& segment, std::vector<Segment>& words) const {
  std::vector<Part> parts = pattern.partition(segment.text);
  if (invert) {
    for (Part& part : parts) part.is_match = !part.is_match;
  }
  append_words(segment, text::split(parts, behavior), words);
}

void PreTokenizer::Digits::apply(const Segment& segment, std::vector<Segment>& words) const {
  const SplitBehavior behavior = individual ? SplitBehavior::isolated : SplitBehavior::contiguous;
  append_words(segment, text::split(numeric_parts(segment.text), behavior), words);
}

void PreTokenizer::ByteLevel::apply(Segment segment, std::vector<Segment>& result) const {
  if (add_prefix_space && !segment.text.starts_with(' ')) segment.text.insert(0, 1, ' ');
  const auto spell = [&](std::string_view bytes, bool starts_input) {
    Segment& word = result.emplace_back();
    append_byte_level(word.text, bytes);
    word.starts_input = starts_input;
  };
  if (!words) return spell(segment.text, segment.starts_input);
  const std::string_view text = segment.text;
  for (const Part& part : partition(text.size(), words->find_all(text))) {
    const auto [begin, end] = part.range;
    spell(text.substr(begin, end - begin), segment.starts_input && begin == 0);
  }
}

void PreTokenizer::MetaspaceSplit::apply(Segment segment, std::vector<Segment>& words) const {
  const std::string& mark = metaspace.replacement;
  segment.text = replace(segment.text, find_literal(segment.text, " "), mark);
  const bool prepends = metaspace.prepend == Metaspace::Prepend::always ||
                        (metaspace.prepend == Metaspace::Prepend::first && segment.starts_input);
  if (prepends && !segment.text.starts_with(mark)) segment.text.insert(0, mark);
  if (!split) {
    words.push_back(std::move(segment));
    return;
  }
  const std::vector<Part> parts = partition(segment.text.size(), find_literal(segment.text, mark));
  append_words(segment, text::split(parts, SplitBehavior::merged_with_next), words);
}

}  // namespace qpn8::text
