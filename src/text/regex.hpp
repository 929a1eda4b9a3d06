#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace qpn8::text {

/// A part [begin, end) of a text, in bytes.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A regular expression of tokenizer.json. Immutable and thread-safe.
class Regex {
 public:
  /// A pattern that does not compile is Error::bad_file, one that PCRE2 would read differently Error::unsupported;
  /// `place` ("FILE: KEY") begins every message.
  Regex(std::string_view pattern, std::string place);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  /// The matches in a well-formed text from left to right, none overlapping. An empty match right behind another match
  /// does not count. A search that exceeds the limits on backtracking is Error::bad_value, never a missing match.
  std::vector<Range> find_all(std::string_view text) const;

 private:
  class Code;
  std::unique_ptr<Code> code_;
  std::string place_;
};

/// Whether PCRE2 accepts the pattern, in its own syntax.
bool compiles(const std::string& pattern);

}  // namespace qpn8::text
