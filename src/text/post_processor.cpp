#include "text/post_processor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.hpp"
#include "text/component.hpp"

namespace qpn8::text {
namespace {

struct Surroundings {
  std::vector<TokenId> before;
  std::vector<TokenId> behind;
};

TokenId parse_id(const JsonView& view, std::int64_t vocabulary_size) {
  return static_cast<TokenId>(view.integer(0, vocabulary_size - 1));
}

/// The ids of a special token that a template names.
void append_special(const JsonView& piece, const JsonView& special_tokens, std::int64_t vocabulary_size,
                    std::vector<TokenId>& ids) {
  const JsonView name = piece["id"];
  const JsonView special = special_tokens[name.text()];
  if (special.is_null()) name.fail(in_quotes(name.text()) + " is not in special_tokens of the template");
  for (const JsonView& id : special["ids"].items()) ids.push_back(parse_id(id, vocabulary_size));
}

Surroundings parse_template(const JsonView& view, std::int64_t vocabulary_size) {
  Surroundings around;
  bool behind = false;
  for (const JsonView& piece : view["single"].items()) {
    const JsonView sequence = piece["Sequence"];
    if (sequence.is_null()) {
      append_special(piece["SpecialToken"], view["special_tokens"], vocabulary_size,
                     behind ? around.behind : around.before);
      continue;
    }
    if (sequence["id"].text() != "A") sequence["id"].fail("a template for one sequence holds only the sequence A");
    if (behind) sequence.fail(Error::unsupported, "a template that repeats its sequence is not supported");
    behind = true;
  }
  if (!behind) view["single"].fail(Error::unsupported, "a template without its sequence is not supported");
  return around;
}

/// `[token, id]` of BertProcessing and RobertaProcessing.
TokenId parse_token_pair(const JsonView& view, std::int64_t vocabulary_size) {
  const std::vector<JsonView> items = view.items();
  if (items.size() != 2) view.fail("is not a pair of a token and its id");
  return parse_id(items[1], vocabulary_size);
}

}  // namespace

PostProcessor PostProcessor::parse(const JsonView& view, std::int64_t vocabulary_size) {
  PostProcessor processor;
  for_each_component(view, "processors", [&](std::string_view type, const JsonView& component) {
    Surroundings around;
    if (type == "TemplateProcessing") {
      around = parse_template(component, vocabulary_size);
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      around.before.push_back(parse_token_pair(component["cls"], vocabulary_size));
      around.behind.push_back(parse_token_pair(component["sep"], vocabulary_size));
    } else if (type != "ByteLevel") {  // which changes offsets alone
      refuse_component(component, type);
    }
    // A later processor wraps what the earlier ones made.
    processor.before_.insert(processor.before_.begin(), around.before.begin(), around.before.end());
    processor.behind_.insert(processor.behind_.end(), around.behind.begin(), around.behind.end());
  });
  return processor;
}

std::vector<TokenId> PostProcessor::apply(const std::vector<TokenId>& ids) const {
  const auto present = std::mismatch(before_.begin(), before_.end(), ids.begin(), ids.end());
  std::vector<TokenId> result = before_;
  result.insert(result.end(), present.second, ids.end());
  result.insert(result.end(), behind_.begin(), behind_.end());
  return result;
}

}  // namespace qpn8::text
