#include "text/added_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "text/byte_codes.hpp"
#include "text/unicode.hpp"

namespace qpn8::text {
namespace {

/// Whether no word character touches the range.
bool stands_alone(std::string_view text, Range range) {
  const bool word_before = range.begin > 0 && is_word(code_point_before(text, range.begin).value);
  const bool word_behind = range.end < text.size() && is_word(code_point_at(text, range.end).value);
  return !word_before && !word_behind;
}

/// The range and the white space that the token takes along; of that before it, what lies before `floor` is gone.
Range with_white_space(std::string_view text, Range range, const AddedToken& token, std::size_t floor) {
  while (token.lstrip && range.begin > floor) {
    const CodePoint before = code_point_before(text, range.begin);
    if (!is_space(before.value)) break;
    range.begin -= before.size;
  }
  if (token.lstrip) range.begin = std::max(range.begin, floor);
  while (token.rstrip && range.end < text.size()) {
    const CodePoint behind = code_point_at(text, range.end);
    if (!is_space(behind.value)) break;
    range.end += behind.size;
  }
  return range;
}

AddedToken parse_token(const JsonView& view) {
  AddedToken token;
  token.id = static_cast<TokenId>(view["id"].integer(0, kLargestId));
  token.content = view["content"].text();
  token.spelling = token.content;
  token.single_word = view["single_word"].flag_or(false);
  token.lstrip = view["lstrip"].flag_or(false);
  token.rstrip = view["rstrip"].flag_or(false);
  token.special = view["special"].flag_or(false);
  token.normalized = view["normalized"].flag_or(!token.special);
  return token;
}

std::string normalized_text(const std::string& text, const Normalizer& normalizer) {
  Segment segment{text, false};
  normalizer.apply(segment);
  return segment.text;
}

void check_against_model(const AddedToken& token, const Vocabulary& vocabulary, const JsonView& view) {
  const std::optional<TokenId> id = vocabulary.id_of(token.content);
  if (id && *id != token.id) {
    view.fail(fmt::format("{} has the id {}, but {} in model.vocab", in_quotes(token.content), token.id, *id));
  }
  if (const std::string* other = vocabulary.token(token.id); other != nullptr && *other != token.content) {
    view.fail(fmt::format("{} has the id {}, which is {} in model.vocab", in_quotes(token.content), token.id,
                          in_quotes(*other)));
  }
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.spelling < b.spelling; });
  for (const AddedToken& token : tokens_) ++first_[static_cast<unsigned char>(token.spelling[0]) + 1U];
  for (std::size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
}

/// Narrows the sorted patterns to those that share ever more bytes with the text: O(log of their number) a byte.
const AddedToken* AddedTokenMatcher::longest_at(std::string_view text, std::size_t at) const {
  const auto lead = static_cast<unsigned char>(text[at]);
  auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(first_[lead]);
  auto end = tokens_.begin() + static_cast<std::ptrdiff_t>(first_[lead + 1U]);
  const AddedToken* longest = nullptr;
  for (std::size_t depth = 1; begin != end; ++depth) {
    if (begin->spelling.size() == depth) longest = &*begin;
    if (at + depth == text.size()) break;
    // A pattern that ends here sorts before all that go on.
    const auto next = [&](const AddedToken& token) {
      return token.spelling.size() == depth ? -1 : static_cast<int>(static_cast<unsigned char>(token.spelling[depth]));
    };
    const int byte = static_cast<unsigned char>(text[at + depth]);
    begin = std::partition_point(begin, end, [&](const AddedToken& token) { return next(token) < byte; });
    end = std::partition_point(begin, end, [&](const AddedToken& token) { return next(token) == byte; });
  }
  return longest;
}

std::vector<AddedTokenPart> AddedTokenMatcher::split(std::string_view text) const {
  std::vector<AddedTokenPart> parts;
  std::size_t done = 0;  // the end of the last part
  for (std::size_t at = 0; !tokens_.empty() && at < text.size();) {
    const AddedToken* token = longest_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    const Range match = {at, at + token->spelling.size()};
    at = match.end;
    if (token->single_word && !stands_alone(text, match)) continue;
    const Range range = with_white_space(text, match, *token, done);
    if (done < range.begin) parts.push_back({{done, range.begin}, std::nullopt});
    // As in the reference, a match inside white space that the token before took along counts all the same, unless it
    // takes white space before it along itself and nothing is left of it.
    if (range.begin < range.end) parts.push_back({range, token->id});
    done = range.end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, std::nullopt});
  return parts;
}

AddedTokens AddedTokens::parse(const JsonView& view, const Bpe& model, const Normalizer& normalizer) {
  AddedTokens added;
  if (view.is_null()) return added;
  std::vector<AddedToken> original;
  std::vector<AddedToken> normalized;
  for (const JsonView& item : view.items()) {
    AddedToken token = parse_token(item);
    if (token.content.empty()) continue;  // the reference ignores it too
    check_against_model(token, model.vocabulary(), item);
    if (token.normalized) token.spelling = normalized_text(token.content, normalizer);
    const auto [entry, is_new] = added.tokens_.emplace(token.id, token);
    if (!is_new)
      item.fail(fmt::format("has the id {} of {}; ids are unique", token.id, in_quotes(entry->second.content)));
    if (!added.ids_.emplace(entry->second.content, token.id).second) {
      item.fail(fmt::format("{} is listed twice", in_quotes(token.content)));
    }
    added.size_ = std::max(added.size_, static_cast<std::size_t>(token.id) + 1);
    // Text that spells a byte token is text; it would decode to another text, the byte.
    if (model.has_byte_fallback() && byte_token_value(token.content)) continue;
    if (token.spelling.empty()) continue;
    (token.normalized ? normalized : original).push_back(token);
  }
  added.in_original_ = AddedTokenMatcher(std::move(original));
  added.in_normalized_ = AddedTokenMatcher(std::move(normalized));
  return added;
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

std::optional<TokenId> AddedTokens::id_of(std::string_view content) const {
  const auto found = ids_.find(content);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

}  // namespace qpn8::text
