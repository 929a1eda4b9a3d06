#include "text/vocabulary.hpp"

#include "base/printable.hpp"

#include <fmt/format.h>

namespace qpn8::text {

Vocabulary Vocabulary::parse(const JsonView& view) {
  if (!view.value().is_object()) view.fail("is not an object of tokens and their ids");
  Vocabulary vocabulary;
  vocabulary.ids_.reserve(view.value().size());
  for (const auto& [token, value] : view.value().items()) {
    const auto place = [&, &name = token, &entry = value] {
      return view.child(entry, fmt::format("[{}]", in_quotes(name)));
    };
    // The usual case without a view, whose strings would be made for every token.
    const bool legal = value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t{kLargestId};
    const auto id = static_cast<TokenId>(legal ? value.get<std::int64_t>() : place().integer(0, kLargestId));
    const auto index = static_cast<std::size_t>(id);
    if (index >= vocabulary.tokens_.size()) vocabulary.tokens_.resize(index + 1, nullptr);
    if (const std::string* other = vocabulary.tokens_[index]; other != nullptr) {
      place().fail(fmt::format("has the id {} that {} has already; ids are unique", id, in_quotes(*other)));
    }
    vocabulary.tokens_[index] = &vocabulary.ids_.emplace(token, id).first->first;
  }
  return vocabulary;
}

std::optional<TokenId> Vocabulary::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* Vocabulary::token(TokenId id) const {
  const auto index = static_cast<std::size_t>(id);
  return id >= 0 && index < tokens_.size() ? tokens_[index] : nullptr;
}

}  // namespace qpn8::text
