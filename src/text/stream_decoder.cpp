#include <utility>

#include "text/tokenizer_impl.hpp"

namespace qpn8 {

class StreamDecoder::Impl {
 public:
  Impl(const Tokenizer::Impl& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special), stream_(tokenizer.open_stream()) {}

  std::string push(TokenId id) {
    const std::string& token = tokenizer_.token(id);
    if (!(skip_special_ && tokenizer_.is_special(id))) stream_.push(token);
    return stream_.take();
  }

  std::string finish() {
    stream_.finish();
    return stream_.take();
  }

 private:
  const Tokenizer::Impl& tokenizer_;
  bool skip_special_;
  text::DecodeStream stream_;
};

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : impl_(std::make_unique<Impl>(*tokenizer.impl_, skip_special)) {}

StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

std::string StreamDecoder::push(TokenId id) { return impl_->push(id); }
std::string StreamDecoder::finish() { return impl_->finish(); }

}  // namespace qpn8
