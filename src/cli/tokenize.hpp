#pragma once

#include <iosfwd>
#include <string>

#include "text/tokenizer.hpp"

namespace qpn8::cli {

struct TokenizeOptions {
  bool decode = false;   ///< read "ids" even where a line has "text" too
  bool special = false;  ///< encode with BOS and the like
};

/// Encodes or decodes JSON lines.
///
/// A line of input is an object with "text", which is encoded, or "ids", which are decoded with their special tokens;
/// of both, "text" counts unless `decode` is set. A line of output has both keys. Empty lines are skipped.
/// What cannot be used is Error::bad_value "INPUT:LINE: ..."; the lines before it are written.
void tokenize_lines(const Tokenizer& tokenizer, const TokenizeOptions& options, std::istream& input,
                    const std::string& input_name, std::ostream& output);

}  // namespace qpn8::cli
