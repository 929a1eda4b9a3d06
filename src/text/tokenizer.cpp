#include "text/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_file.hpp"
#include "base/json_view.hpp"
#include "base/mapped_file.hpp"
#include "base/utf8.hpp"
#include "text/tokenizer_impl.hpp"

namespace qpn8 {

Tokenizer::Impl::Impl(const JsonView& root)
    : file_(root.place()),
      model_(text::Bpe::parse(root["model"])),
      normalizer_(text::Normalizer::parse(root["normalizer"])),
      added_tokens_(text::AddedTokens::parse(root["added_tokens"], model_, normalizer_)),
      pre_tokenizer_(text::PreTokenizer::parse(root["pre_tokenizer"])),
      post_processor_(text::PostProcessor::parse(root["post_processor"], vocabulary_size())),
      decoder_(text::Decoder::parse(root["decoder"])) {}

std::vector<TokenId> Tokenizer::Impl::encode(std::string_view input) const {
  std::vector<TokenId> ids;
  for (const text::AddedTokenPart& part : added_tokens_.in_original().split(input)) {
    if (part.token) {
      ids.push_back(*part.token);
    } else {
      const auto [begin, end] = part.range;
      encode_segment({std::string(input.substr(begin, end - begin)), begin == 0}, ids);
    }
  }
  return ids;
}

/// A part of the text in which there is no added token, other than those that appear when it is normalised.
void Tokenizer::Impl::encode_segment(text::Segment segment, std::vector<TokenId>& ids) const {
  normalizer_.apply(segment);
  for (const text::AddedTokenPart& part : added_tokens_.in_normalized().split(segment.text)) {
    if (part.token) {
      ids.push_back(*part.token);
      continue;
    }
    const auto [begin, end] = part.range;
    const bool starts_input = segment.starts_input && begin == 0;
    for (const text::Segment& word : pre_tokenizer_.apply({segment.text.substr(begin, end - begin), starts_input})) {
      model_.encode(word.text, ids);
    }
  }
}

const std::string& Tokenizer::Impl::token(TokenId id) const {
  if (const text::AddedToken* added = added_tokens_.find(id)) return added->spelling;
  if (const std::string* token = model_.vocabulary().token(id)) return *token;
  throw Error(Error::bad_value,
              fmt::format("{}: no token has the id {}; ids are below {}", file_, id, vocabulary_size()));
}

std::optional<TokenId> Tokenizer::Impl::id_of(std::string_view token) const {
  const std::optional<TokenId> added = added_tokens_.id_of(token);
  return added ? added : model_.vocabulary().id_of(token);
}

bool Tokenizer::Impl::is_special(TokenId id) const {
  const text::AddedToken* added = added_tokens_.find(id);
  return added != nullptr && added->special;
}

std::int64_t Tokenizer::Impl::vocabulary_size() const {
  return static_cast<std::int64_t>(std::max(model_.vocabulary().size(), added_tokens_.size()));
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Tokenizer::Tokenizer(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  *this = parse(mapped.text(), file);
}

Tokenizer Tokenizer::parse(std::string_view json, const std::filesystem::path& name) {
  const std::string file = name.string();
  const nlohmann::json document = parse_json(json, file);
  return Tokenizer(std::make_unique<Impl>(JsonView(document, file)));
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool special) const {
  const std::vector<TokenId> ids = is_well_formed(text) ? impl_->encode(text) : impl_->encode(to_well_formed(text));
  return special ? impl_->with_special(ids) : ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  text::DecodeStream stream = impl_->open_stream();
  for (const TokenId id : ids) {
    const std::string& token = impl_->token(id);
    if (!(skip_special && impl_->is_special(id))) stream.push(token);
  }
  stream.finish();
  return stream.take();
}

std::int64_t Tokenizer::vocabulary_size() const { return impl_->vocabulary_size(); }
std::optional<TokenId> Tokenizer::id_of(std::string_view token) const { return impl_->id_of(token); }
bool Tokenizer::is_special(TokenId id) const { return impl_->is_special(id); }

}  // namespace qpn8
