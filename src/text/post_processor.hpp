#pragma once

#include <string>
#include <vector>

#include "base/json_view.hpp"
#include "text/tokenizer.hpp"

namespace qpn8::text {

/// The post-processor of a tokenizer.json for one sequence: what stands before and behind a text's ids. Immutable and
/// thread-safe.
class PostProcessor {
 public:
  /// A null gives none. An unknown type, and a template that does not hold its sequence exactly once, is
  /// Error::unsupported; a special token whose id is not below `vocabulary_size` is Error::bad_file.
  static PostProcessor parse(const JsonView& view, std::int64_t vocabulary_size);

  /// The ids with the special tokens around them. What the ids begin with of the tokens that would come before them
  /// is not added again: one BOS, whether or not the text brought its own.
  std::vector<TokenId> apply(const std::vector<TokenId>& ids) const;

 private:
  std::vector<TokenId> before_;
  std::vector<TokenId> behind_;
};

}  // namespace qpn8::text
