#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "text/tokenizer.hpp"

namespace qpn8::cli {

struct TokenizeOptions {
  bool decode = false;   ///< read "ids" even where a line has "text" too
  bool special = false;  ///< encode with BOS and the like
};

/// Encodes or decodes JSON lines.
///
/// A line of input is an object with "text", which is encoded, or "ids", which are decoded with their special tokens;
/// of both, "text" counts unless `decode` is set. Each output, a line with both keys, goes to `write`. Empty lines are
/// skipped.
/// A line that is not a JSON object is Error::bad_file "INPUT:LINE: ...", an object that cannot be used is
/// Error::bad_value; the lines before it were written.
void tokenize_lines(const Tokenizer& tokenizer, const TokenizeOptions& options, std::istream& input,
                    const std::string& input_name, const std::function<void(std::string_view)>& write);

}  // namespace qpn8::cli
