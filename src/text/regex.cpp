#include "text/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <new>
#include <utility>

#include "base/json_view.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "qpn8/error.hpp"
#include "text/regex_syntax.hpp"

namespace qpn8::text {
namespace {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using CodeHandle = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;

template <class Handle>
Handle made(Handle handle) {
  if (!handle) throw std::bad_alloc();
  return handle;
}

std::string error_text(int code) {
  std::array<PCRE2_UCHAR, 256> buffer = {};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

PCRE2_SPTR units(std::string_view text) {
  // PCRE2 wants a pointer even to nothing.
  return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
}

struct CompileError {
  int code = 0;
  PCRE2_SIZE offset = 0;
};

CodeHandle compile(std::string_view pattern, CompileError& error) {
  constexpr std::size_t kLongestPattern = std::size_t{1} << 16;
  const CompileContext context = made(CompileContext(pcre2_compile_context_create(nullptr)));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_max_pattern_length(context.get(), kLongestPattern);
  // A pattern must not look inside a code point, else offsets could cut through one.
  constexpr std::uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  return CodeHandle(pcre2_compile(units(pattern), pattern.size(), kOptions, &error.code, &error.offset, context.get()));
}

}  // namespace

class Regex::Code {
 public:
  explicit Code(CodeHandle code) : code_(std::move(code)), limits_(made(make_limits())) {
    // Where executable memory is refused, matching falls back to the interpreter by itself.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  /// PCRE2's result; the match goes to `data`.
  int match(std::string_view text, std::size_t from, pcre2_match_data* data) const {
    const int result =
        pcre2_match(code_.get(), units(text), text.size(), from, PCRE2_NO_UTF_CHECK, data, limits_.get());
    if (result != PCRE2_ERROR_JIT_STACKLIMIT) return result;
    // The compiled code has a small fixed stack; the interpreter keeps its own on the heap.
    return pcre2_match(code_.get(), units(text), text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                       limits_.get());
  }

  MatchData make_match_data() const {
    return made(MatchData(pcre2_match_data_create_from_pattern(code_.get(), nullptr)));
  }

 private:
  static MatchContext make_limits() {
    constexpr std::uint32_t kMatchLimit = 20'000'000;  // backtracking steps of one match
    constexpr std::uint32_t kHeapLimitKib = 1 << 19;
    MatchContext context(pcre2_match_context_create(nullptr));
    if (context) {
      pcre2_set_match_limit(context.get(), kMatchLimit);
      pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    }
    return context;
  }

  CodeHandle code_;
  MatchContext limits_;
};

Regex::Regex(std::string_view pattern, std::string place) : place_(std::move(place)) {
  CompileError error;
  CodeHandle code = compile(translate_regex(pattern, place_), error);
  if (!code) {
    throw Error(Error::bad_file, fmt::format("{}: the regular expression {} does not compile: {}", place_,
                                             in_quotes(pattern), error_text(error.code)));
  }
  code_ = std::make_unique<Code>(std::move(code));
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

std::vector<Range> Regex::find_all(std::string_view text) const {
  std::vector<Range> matches;
  const MatchData data = code_->make_match_data();
  const PCRE2_SIZE* const offsets = pcre2_get_ovector_pointer(data.get());
  std::size_t from = 0;
  while (from <= text.size()) {
    const int result = code_->match(text, from, data.get());
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      throw Error(Error::bad_value, fmt::format("{}: the regular expression cannot be matched against this text: {}",
                                                place_, error_text(result)));
    }
    const Range match = {offsets[0], offsets[1]};
    const bool empty = match.begin == match.end;
    if (empty && !matches.empty() && matches.back().end == match.end) {
      from = match.end + (match.end < text.size() ? code_point_at(text, match.end).size : 1);
    } else {
      matches.push_back(match);
      from = match.end;
    }
  }
  return matches;
}

bool compiles(const std::string& pattern) {
  CompileError error;
  return compile(pattern, error) != nullptr;
}

}  // namespace qpn8::text
