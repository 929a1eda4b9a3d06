#pragma once

#include <string>
#include <string_view>

namespace qpn8::text {

/// Rewrites a regular expression of tokenizer.json (Oniguruma with Ruby's syntax) so that PCRE2 with UTF, UCP and
/// MULTILINE reads the same thing.
///
/// What PCRE2 would read as something else, and what cannot be rewritten simply, is Error::unsupported naming it;
/// `place` begins the message. Errors of syntax are left for PCRE2 to find.
std::string translate_regex(std::string_view pattern, const std::string& place);

}  // namespace qpn8::text
