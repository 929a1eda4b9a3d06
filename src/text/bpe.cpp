#include "text/bpe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "text/byte_codes.hpp"
#include "text/utf8.hpp"

namespace qpn8::text {
namespace {

constexpr std::uint64_t pair_key(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

void check_type(const JsonView& view) {
  const JsonView type = view["type"];
  // Old files do not say the type; merges tell BPE from the others.
  const bool is_bpe = type.is_null() ? !view["merges"].is_null() : type.text() == "BPE";
  if (!is_bpe) {
    view.fail(Error::unsupported, fmt::format("the model {} is not supported; BPE is",
                                              type.is_null() ? std::string("without a type") : in_quotes(type.text())));
  }
  const JsonView dropout = view["dropout"];
  if (!dropout.is_null() && !(dropout.value().is_number() && dropout.value().get<double>() == 0.0)) {
    dropout.fail(Error::unsupported, "dropout makes encodings random and is not supported; null is");
  }
}

/// The two tokens of one entry of `merges`: [left, right], or "left right" in older files.
std::pair<std::string_view, std::string_view> merge_pair(const nlohmann::json& entry) {
  if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
    return {entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>()};
  }
  if (!entry.is_string()) return {};
  const std::string_view line = entry.get_ref<const std::string&>();
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) return {};
  return {line.substr(0, space), line.substr(space + 1)};
}

}  // namespace

Bpe Bpe::parse(const JsonView& view) {
  check_type(view);
  Bpe bpe;
  bpe.place_ = view.place();
  bpe.vocabulary_ = Vocabulary::parse(view["vocab"]);
  if (std::optional<std::string> token = view["unk_token"].optional_text()) {
    const std::optional<TokenId> id = bpe.vocabulary_.id_of(*token);
    bpe.unknown_ = UnknownToken{std::move(*token), id};
  }
  bpe.continuing_prefix_ = view["continuing_subword_prefix"].text_or("");
  bpe.word_suffix_ = view["end_of_word_suffix"].text_or("");
  bpe.byte_fallback_ = view["byte_fallback"].flag_or(false);
  bpe.fuse_unknown_ = view["fuse_unk"].flag_or(false);
  bpe.ignore_merges_ = view["ignore_merges"].flag_or(false);
  for (std::size_t byte = 0; byte < bpe.byte_ids_.size(); ++byte) {
    bpe.byte_ids_[byte] = bpe.vocabulary_.id_of(byte_token(static_cast<std::uint8_t>(byte)));
  }
  bpe.parse_merges(view["merges"]);
  return bpe;
}

void Bpe::parse_merges(const JsonView& view) {
  if (!view.value().is_array()) view.fail("is not an array of pairs of tokens");
  merges_.reserve(view.value().size());
  std::uint32_t rank = 0;
  for (const nlohmann::json& entry : view.value()) {
    const bool is_header = entry.is_string() && entry.get_ref<const std::string&>().starts_with("#version");
    if (!is_header) {
      const auto [left, right] = merge_pair(entry);
      const JsonView& list = view;
      if (left.empty() || right.empty()) {
        list.child(entry, fmt::format("[{}]", rank)).fail(R"(is neither ["left", "right"] nor "left right")");
      }
      add_merge(left, right, rank, list);
    }
    ++rank;
  }
}

void Bpe::add_merge(std::string_view left, std::string_view right, std::uint32_t rank, const JsonView& place) {
  const auto known = [&](std::string_view token) {
    const std::optional<TokenId> id = vocabulary_.id_of(token);
    if (!id) {
      place.child(place.value()[rank], fmt::format("[{}]", rank))
          .fail(fmt::format("names {}, which is not in model.vocab", in_quotes(token)));
    }
    return *id;
  };
  const TokenId left_id = known(left);
  const TokenId right_id = known(right);
  if (right.size() < continuing_prefix_.size()) {
    place.child(place.value()[rank], fmt::format("[{}]", rank))
        .fail(fmt::format("{} is shorter than continuing_subword_prefix", in_quotes(right)));
  }
  const std::string merged = std::string(left).append(right.substr(continuing_prefix_.size()));
  // Of a pair that is listed twice the reference takes the later rank.
  merges_.insert_or_assign(pair_key(left_id, right_id), Merge{rank, known(merged)});
}

const Bpe::Merge* Bpe::find_merge(TokenId left, TokenId right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

bool Bpe::append_byte_tokens(std::string_view character, std::vector<TokenId>& ids) const {
  const std::size_t before = ids.size();
  for (const char byte : character) {
    const std::optional<TokenId> id = byte_ids_[static_cast<unsigned char>(byte)];
    if (!id) {
      ids.resize(before);
      return false;
    }
    ids.push_back(*id);
  }
  return true;
}

TokenId Bpe::unknown_id() const {
  if (!unknown_->id) {
    throw Error(Error::bad_file, fmt::format("{}.unk_token: {} is not in model.vocab, but this text needs it", place_,
                                             in_quotes(unknown_->token)));
  }
  return *unknown_->id;
}

/// The symbols before any merge: a token a character, or byte tokens, or the unknown token.
std::vector<TokenId> Bpe::initial_ids(std::string_view word) const {
  std::vector<TokenId> ids;
  ids.reserve(word.size());
  // An unknown token waits for the next known one, which is where the reference places it: behind byte tokens that
  // came after it.
  std::size_t waiting = 0;
  const auto flush = [&] {
    if (waiting > 0) ids.insert(ids.end(), std::exchange(waiting, 0), unknown_id());
  };
  std::string decorated;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t size = code_point_at(word, at).size;
    std::string_view character = word.substr(at, size);
    const std::string_view prefix = at > 0 ? continuing_prefix_ : std::string_view();
    at += size;
    const std::string_view suffix = at == word.size() ? word_suffix_ : std::string_view();
    if (!prefix.empty() || !suffix.empty()) {
      decorated.assign(prefix).append(character).append(suffix);
      character = decorated;
    }
    if (const std::optional<TokenId> id = vocabulary_.id_of(character)) {
      flush();
      ids.push_back(*id);
    } else if (!(byte_fallback_ && append_byte_tokens(character, ids)) && unknown_) {
      if (!fuse_unknown_) flush();
      waiting = 1;
    }
  }
  flush();
  return ids;
}

/// The symbols of a word as a doubly linked list, in which merging two of them takes constant time.
class Bpe::Word {
 public:
  Word(const Bpe& bpe, const std::vector<TokenId>& ids) : bpe_(bpe) {
    symbols_.reserve(ids.size());
    for (const TokenId id : ids) {
      const auto index = static_cast<std::ptrdiff_t>(symbols_.size());
      symbols_.push_back({id, index - 1, index + 1});
    }
    symbols_.back().next = kNone;
  }

  /// Merges, always the pair of the lowest rank and of those the leftmost, until no pair merges any more.
  void merge_all() {
    for (std::ptrdiff_t i = 0; i + 1 < static_cast<std::ptrdiff_t>(symbols_.size()); ++i) consider(i);
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());  // linear, unlike pushing one by one
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const Candidate best = heap_.back();
      heap_.pop_back();
      if (is_current(best)) apply(best);
    }
  }

  std::size_t lookups() const { return lookups_; }

  void append_to(std::vector<TokenId>& ids) const {
    for (std::ptrdiff_t i = 0; i != kNone; i = at(i).next) ids.push_back(at(i).id);
  }

 private:
  static constexpr std::ptrdiff_t kNone = -1;
  static constexpr TokenId kMerged = -1;  // the id of a symbol that became part of the one before it

  struct Symbol {
    TokenId id;
    std::ptrdiff_t previous;
    std::ptrdiff_t next;
  };
  struct Candidate {
    std::uint32_t rank;
    TokenId result;
    std::ptrdiff_t position;
    bool operator>(const Candidate& other) const {
      return std::pair(rank, position) > std::pair(other.rank, other.position);
    }
  };

  const Symbol& at(std::ptrdiff_t index) const { return symbols_[static_cast<std::size_t>(index)]; }
  Symbol& at(std::ptrdiff_t index) { return symbols_[static_cast<std::size_t>(index)]; }

  /// The merge of this symbol and the next, if there is one.
  const Merge* merge_at(std::ptrdiff_t left) {
    ++lookups_;
    return bpe_.find_merge(at(left).id, at(at(left).next).id);
  }

  /// Adds the pair of this symbol and the next to the end of the heap's array if it merges.
  bool consider(std::ptrdiff_t left) {
    const Merge* merge = merge_at(left);
    if (merge != nullptr) heap_.push_back({merge->rank, merge->result, left});
    return merge != nullptr;
  }

  void push(std::ptrdiff_t left) {
    if (consider(left)) std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  /// Whether the pair still stands as it did when the candidate was queued; entries of pairs that a merge broke up stay
  /// in the heap.
  bool is_current(const Candidate& candidate) {
    const Symbol& left = at(candidate.position);
    if (left.id == kMerged || left.next == kNone) return false;
    const Merge* merge = merge_at(candidate.position);
    return merge != nullptr && merge->result == candidate.result;
  }

  void apply(const Candidate& candidate) {
    Symbol& left = at(candidate.position);
    Symbol& right = at(left.next);
    left.id = candidate.result;
    left.next = right.next;
    right.id = kMerged;
    if (left.next != kNone) {
      at(left.next).previous = candidate.position;
      push(candidate.position);
    }
    if (left.previous != kNone) push(left.previous);
  }

  const Bpe& bpe_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;  // the best one first
  std::size_t lookups_ = 0;
};

std::size_t Bpe::encode(std::string_view word, std::vector<TokenId>& ids) const {
  if (ignore_merges_ && !(byte_fallback_ && byte_token_value(word))) {
    if (const std::optional<TokenId> id = vocabulary_.id_of(word)) {
      ids.push_back(*id);
      return 0;
    }
  }
  const std::vector<TokenId> initial = initial_ids(word);
  if (initial.empty()) return 0;
  Word symbols(*this, initial);
  symbols.merge_all();
  symbols.append_to(ids);
  return symbols.lookups();
}

}  // namespace qpn8::text
