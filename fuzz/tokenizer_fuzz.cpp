#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "qpn8/error.hpp"
#include "text/tokenizer.hpp"

// An input is one of two things, told apart by its first byte:
//   '{'   a tokenizer.json, a NUL, and the text to encode: explores the loader;
//   else  bytes that choose among legal components, and the text: explores encoding and decoding, which mutations of
//         JSON reach too rarely.

namespace qpn8 {
namespace {

constexpr auto kNormalizers = std::to_array<std::string_view>({
    R"(null)",
    R"({"type":"NFC"})",
    R"({"type":"NFKD"})",
    R"({"type":"Lowercase"})",
    R"({"type":"StripAccents"})",
    R"({"type":"Strip","strip_left":true,"strip_right":true})",
    R"({"type":"Replace","pattern":{"Regex":"\\s+|a"},"content":""})",
    R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"_"},
        {"type":"Replace","pattern":{"String":" "},"content":"_"}]})",
});

constexpr auto kPreTokenizers = std::to_array<std::string_view>({
    R"(null)",
    R"({"type":"ByteLevel","add_prefix_space":true})",
    R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})",
    R"({"type":"Digits","individual_digits":false})",
    R"({"type":"Metaspace","replacement":"_","prepend_scheme":"first","split":true})",
    R"({"type":"Split","pattern":{"String":"a"},"behavior":"MergedWithNext","invert":true})",
    R"({"type":"Split","pattern":{"Regex":"\\p{N}{1,3}|[^\\s\\p{L}]*"},"behavior":"Contiguous"})",
    R"json({"type":"Split","pattern":{"Regex":"(?=\\w)|(?i:'s)| ?\\p{L}+|\\s+(?!\\S)"},"behavior":"MergedWithPrevious"
})json",
});

constexpr auto kDecoders = std::to_array<std::string_view>({
    R"(null)",
    R"({"type":"ByteLevel"})",
    R"({"type":"ByteFallback"})",
    R"({"type":"Metaspace","replacement":"_"})",
    R"({"type":"Strip","content":"a","start":1,"stop":2})",
    R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},"content":" "},
        {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})",
});

/// Tokens of every kind, and merges that chain.
constexpr std::string_view kModel = R"({"type":"BPE","vocab":{"a":0,"b":1,"_":2,"aa":3,"aaa":4,"ab":5,"_a":6,"<0xC3>":7,
    "<0xA9>":8,"\u00c3":9,"\u0120":10,"\u0120a":11,"<s>":12,"<unk>":13,"1":14,"'":15,"s":16,"'s":17,"<0xFF>":18},
    "merges":[["a","a"],["aa","a"],["a","b"],["_","a"],["\u0120","a"],["'","s"]],"unk_token":"<unk>")";

std::string build_json(FuzzedDataProvider& input) {
  const auto flag = [&] { return input.ConsumeBool() ? "true" : "false"; };
  std::string json = R"({"model":)";
  json += kModel;
  for (const std::string_view key : {"byte_fallback", "fuse_unk", "ignore_merges"}) {
    json.append(",\"").append(key).append("\":").append(flag());
  }
  json.append("},\"normalizer\":").append(input.PickValueInArray(kNormalizers));
  json.append(",\"pre_tokenizer\":").append(input.PickValueInArray(kPreTokenizers));
  json.append(",\"decoder\":").append(input.PickValueInArray(kDecoders));
  json.append(R"(,"added_tokens":[{"id":12,"content":"<s>","special":true,"lstrip":)").append(flag());
  json.append(R"(,"rstrip":)").append(flag());
  json.append(R"(},{"id":20,"content":"a b","single_word":)").append(flag());
  json.append(R"(,"normalized":)").append(flag());
  json += R"(}],"post_processor":{"type":"BertProcessing","cls":["<s>",12],"sep":["<s>",12]}})";
  return json;
}

void exercise(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids = tokenizer.encode(text);
  const std::vector<TokenId> with_special = tokenizer.encode(text, true);
  ids.insert(ids.end(), with_special.begin(), with_special.end());
  // Sequences that no encoder makes: the text's bytes as ids.
  for (const char byte : text) {
    const TokenId id = static_cast<unsigned char>(byte);
    if (id < tokenizer.vocabulary_size()) ids.push_back(id);
  }
  for (const bool skip_special : {false, true}) {
    StreamDecoder decoder(tokenizer, skip_special);
    std::string streamed;
    for (const TokenId id : ids) streamed += decoder.push(id);
    streamed += decoder.finish();
    check(streamed == tokenizer.decode(ids, skip_special), "streaming decodes to the same text");
  }
}

void run(std::string_view bytes) {
  if (bytes.starts_with('{')) {
    const std::size_t end = std::min(bytes.find('\0'), bytes.size());
    exercise(Tokenizer::parse(bytes.substr(0, end), "fuzz.json"), bytes.substr(std::min(end + 1, bytes.size())));
    return;
  }
  FuzzedDataProvider input(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  const std::string json = build_json(input);
  exercise(Tokenizer::parse(json, "fuzz.json"), input.ConsumeRemainingBytesAsString());
}

}  // namespace
}  // namespace qpn8

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    qpn8::run({reinterpret_cast<const char*>(data), size});
  } catch (const qpn8::Error& error) {
    qpn8::check(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error is one line");
  }
  return 0;
}
