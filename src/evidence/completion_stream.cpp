#include "evidence/completion_stream.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

/// A text that is there and not null.
std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

void CompletionStream::event(std::string_view data, Time now) {
  started_ = true;
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const std::optional<Json> parsed = try_parse_json(data);
  if (!parsed || !parsed->is_object()) {
    throw Error(Error::bad_value, "the server sent an event that is not a JSON object");
  }
  const Json& event = *parsed;
  if (event.contains("error")) {
    const Json& error = event.at("error");
    throw Error(Error::bad_value, "the server says: " + (error.is_object() ? in_quotes(text_of(error, "message"), 300)
                                                                           : describe(error)));
  }
  if (event.contains("usage") && event.at("usage").is_object()) {
    const Json tokens = event.at("usage").value("completion_tokens", Json());
    if (tokens.is_number_integer()) counted_ = tokens.get<std::int64_t>();
  }
  if (!event.contains("choices") || !event.at("choices").is_array() || event.at("choices").empty()) return;
  const Json& choice = event.at("choices").front();
  if (!choice.is_object()) return;
  if (choice.contains("delta") && choice.at("delta").is_object()) {
    const std::string text = text_of(choice.at("delta"), "content");
    piece(text_of(choice.at("delta"), "reasoning_content"), now);
    piece(text, now);
    output_.text += text;
  }
  const std::string reason = text_of(choice, "finish_reason");
  if (!reason.empty()) output_.finish_reason = reason;
}

void CompletionStream::piece(const std::string& text, Time now) {
  if (text.empty()) return;
  if (!first_) first_ = now;
  last_ = now;
  const auto number = static_cast<std::int32_t>(numbers_.size());
  output_.tokens.push_back(numbers_.try_emplace(text, number).first->second);
}

ArmOutput CompletionStream::finish() {
  ArmOutput output = std::exchange(output_, {});
  output.tokens_are_ids = false;
  output.token_count = counted_.value_or(static_cast<std::int64_t>(output.tokens.size()));
  if (!first_) return output;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  output.ttft_ms = Milliseconds(*first_ - start_).count();
  const double decoding = std::chrono::duration<double>(*last_ - *first_).count();
  if (output.token_count > 1 && decoding > 0) {
    output.decode_tokens_per_s = static_cast<double>(output.token_count - 1) / decoding;
  }
  return output;
}

}  // namespace qpn8
