#include "text/decode_stages.hpp"

#include <algorithm>
#include <utility>

#include "text/byte_codes.hpp"

namespace qpn8::text {

void WholeTokenStage::end_token() {
  token(token_);
  token_.clear();
}

void JoinStage::append(std::string_view piece) {
  if (std::exchange(at_token_start_, false) && !is_first_) next_.append(" ");
  next_.append(piece);
}

void JoinStage::end_token() {
  next_.end_token();
  at_token_start_ = true;
  is_first_ = false;
}

void ByteLevelStage::token(std::string_view text) {
  const std::optional<std::string> bytes = byte_level_bytes(text);
  std::string certain;
  assembler_.push(bytes ? std::string_view{*bytes} : text, certain);
  next_.append(certain);
}

void ByteLevelStage::finish() {
  std::string rest;
  assembler_.finish(rest);
  write(next_, rest);
  next_.finish();
}

void ByteFallbackStage::token(std::string_view text) {
  if (const std::optional<std::uint8_t> byte = byte_token_value(text)) {
    run_.push_back(static_cast<char>(*byte));
    return;
  }
  end_run();
  write(next_, text);
}

void ByteFallbackStage::end_run() {
  const std::string run = std::exchange(run_, {});
  if (run.empty()) return;
  if (is_well_formed(run)) {
    write(next_, run);
  } else {
    for (std::size_t i = 0; i < run.size(); ++i) write(next_, kReplacementCharacter);
  }
}

void ByteFallbackStage::finish() {
  end_run();
  next_.finish();
}

void FuseStage::finish() {
  next_.end_token();
  next_.finish();
}

void ReplaceStage::token(std::string_view text) { write(next_, replace(text, pattern_.find_all(text), content_)); }

void StripStartStage::append(std::string_view piece) {
  for (; left_ > 0 && piece.starts_with(content_); --left_) piece.remove_prefix(content_.size());
  if (piece.empty()) return;
  left_ = 0;
  next_.append(piece);
}

void StripStartStage::end_token() {
  left_ = most_;
  next_.end_token();
}

void StripEndStage::append(std::string_view piece) {
  std::size_t at_end = 0;
  for (; piece.ends_with(content_); ++at_end) piece.remove_suffix(content_.size());
  if (!piece.empty()) {
    release(std::exchange(held_, 0));
    next_.append(piece);
  }
  held_ += at_end;
}

void StripEndStage::end_token() {
  release(held_ - std::min(held_, most_));
  held_ = 0;
  next_.end_token();
}

void StripEndStage::release(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) next_.append(content_);
}

void MetaspaceStage::append(std::string_view piece) {
  const bool drop = is_first_ && metaspace_.prepend != Metaspace::Prepend::never;
  next_.append(replace(piece, find_literal(piece, metaspace_.replacement), drop ? "" : " "));
}

void MetaspaceStage::end_token() {
  is_first_ = false;
  next_.end_token();
}

}  // namespace qpn8::text
