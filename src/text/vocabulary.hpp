#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json_view.hpp"
#include "text/tokenizer.hpp"

namespace qpn8::text {

/// The largest id a file may use; a table of so many entries is affordable even where a hostile file has just one.
inline constexpr TokenId kLargestId = (TokenId{1} << 22) - 1;

/// Tokens and their ids, which may have gaps. Immutable and thread-safe once it is read.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;  // no copies: tokens_ points into ids_
  Vocabulary& operator=(Vocabulary&&) = default;

  /// `{token: id, ...}`. An id that is not a whole number in [0, kLargestId] or that two tokens share is
  /// Error::bad_file naming the token.
  static Vocabulary parse(const JsonView& view);

  std::optional<TokenId> id_of(std::string_view token) const;
  /// Null where no token has the id.
  const std::string* token(TokenId id) const;
  /// One more than the largest id.
  std::size_t size() const { return tokens_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view token) const { return std::hash<std::string_view>()(token); }
  };

  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  // by id, into the keys of ids_
};

}  // namespace qpn8::text
