#include "checkpoint/synthetic_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;

// Everything but added_tokens and the vocabulary.
constexpr const char* kSkeleton = R"json({
  "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "behavior": "Isolated", "invert": false,
     "pattern": {"Regex": "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+"}},
    {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
  "post_processor": null,
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
    "vocab": {}, "merges": []}
})json";

constexpr const char* kTokenizerConfig = R"json({
  "bos_token": null,
  "clean_up_tokenization_spaces": false,
  "eos_token": "<|im_end|>",
  "pad_token": "<|endoftext|>",
  "tokenizer_class": "PreTrainedTokenizerFast"
}
)json";

constexpr const char* kChatTemplate =
    R"({%- for message in messages %})"
    R"({{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }})"
    R"({%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %})";

struct SpecialToken {
  const char* text;
  std::int64_t id;
};

/// In the order of their ids.
std::vector<SpecialToken> special_tokens(const ModelConfig& config) {
  const std::int64_t end = config.eos_tokens.empty() ? config.vocab_size - 1 : config.eos_tokens.front();
  std::int64_t text = config.bos_token.value_or(0);
  if (text == end) text = end == 0 ? 1 : end - 1;
  std::int64_t start = text;
  while (start == text || start == end) start = (start + 1) % config.vocab_size;
  std::vector<SpecialToken> tokens = {{"<|endoftext|>", text}, {"<|im_start|>", start}, {"<|im_end|>", end}};
  std::sort(tokens.begin(), tokens.end(), [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
  return tokens;
}

/// The printable character that stands for each byte in a byte-level vocabulary: itself where it is printable in
/// Latin-1, else the next of U+0100, U+0101, ...; all of them take at most two bytes of UTF-8.
std::array<std::string, 256> byte_characters() {
  std::array<std::string, 256> characters;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    const unsigned code = printable ? byte : next++;
    if (code < 0x80) {
      characters[byte] = static_cast<char>(code);
    } else {
      characters[byte] = {static_cast<char>(0xc0U | code >> 6), static_cast<char>(0x80U | (code & 0x3fU))};
    }
  }
  return characters;
}

json vocabulary(std::int64_t size, const std::vector<SpecialToken>& special) {
  json vocab = json::object();
  for (const SpecialToken& token : special) vocab[token.text] = token.id;
  const auto characters = byte_characters();
  const std::string& space = characters[' '];
  std::size_t byte = 0;
  for (std::int64_t id = 0; id < size; ++id) {
    if (std::any_of(special.begin(), special.end(), [id](const SpecialToken& token) { return token.id == id; }))
      continue;
    vocab[byte < characters.size() ? characters[byte++] : fmt::format("{}t{}", space, id)] = id;
  }
  return vocab;
}

}  // namespace

void write_synthetic_tokenizer(const ModelConfig& config, const std::filesystem::path& folder) {
  constexpr std::int64_t kSmallest = 256 + 3;
  const auto special = special_tokens(config);
  if (config.vocab_size < kSmallest || special.back().id >= config.vocab_size) {
    throw Error(Error::unsupported_shape,
                fmt::format("{}: vocab_size is {}, a synthetic tokenizer needs {} ids and those of bos and eos",
                            config.file.string(), config.vocab_size, kSmallest));
  }
  json tokenizer = json::parse(kSkeleton);
  for (const SpecialToken& token : special) {
    tokenizer["added_tokens"].push_back({{"id", token.id},
                                         {"content", token.text},
                                         {"single_word", false},
                                         {"lstrip", false},
                                         {"rstrip", false},
                                         {"normalized", false},
                                         {"special", true}});
  }
  tokenizer["model"]["vocab"] = vocabulary(config.vocab_size, special);
  write_file(folder / "tokenizer.json", tokenizer.dump(1) + "\n");
  write_file(folder / "tokenizer_config.json", kTokenizerConfig);
  write_file(folder / "chat_template.jinja", kChatTemplate);
}

}  // namespace qpn8
