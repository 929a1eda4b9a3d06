#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qpn8 {

/// Finds the first stop text in a text that arrives in pieces, and holds back what may still become one.
///
/// The stop text whose last byte comes first wins; of several that end there the longest. That does not depend on how
/// the text is cut into pieces. Time is linear in the text for each stop text (Knuth, Morris and Pratt).
class StopMatcher {
 public:
  /// No stop text is empty, else Error::bad_argument.
  explicit StopMatcher(std::span<const std::string> stops);

  /// The text that became certain with this piece: all that is before a stop text, once one is found. What comes after
  /// it is dropped.
  std::string push(std::string_view piece);

  /// The text ends here: what was held back, or nothing after a match.
  std::string finish();

  bool matched() const { return matched_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<std::size_t> border;  ///< border[i]: length of the longest proper prefix that ends text[0, i]
    std::size_t state = 0;            ///< bytes of the pattern that the text so far ends with
  };

  std::vector<Pattern> patterns_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace qpn8
