#include "evidence/completion_stream.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void fault(const std::string& what) { throw Error(Error::bad_value, "the server's stream: " + what); }

/// A member that is there and not null.
const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

/// A text; an empty one where there is none.
std::string text_of(const Json& object, const char* key) {
  const Json* text = member(object, key);
  if (text == nullptr) return {};
  if (!text->is_string()) fault(fmt::format("\"{}\" is {}, expected a text", key, describe(*text)));
  return text->get<std::string>();
}

std::string error_message(const Json& error) {
  const Json* message = error.is_object() ? member(error, "message") : &error;
  if (message == nullptr) return "an error without a message";
  return message->is_string() ? in_quotes(message->get_ref<const std::string&>(), 300) : describe(*message);
}

/// The one choice that was asked for; nothing in an event that is not the answer's, such as that of the usage.
const Json* choice_of(const Json& event) {
  const Json* choices = member(event, "choices");
  if (choices == nullptr) return nullptr;
  if (!choices->is_array()) fault("\"choices\" is " + describe(*choices) + ", expected a list");
  if (choices->empty()) return nullptr;
  if (choices->size() > 1) fault(fmt::format("{} choices in an event, expected one", choices->size()));
  const Json& choice = choices->front();
  if (!choice.is_object()) fault("a choice is " + describe(choice) + ", expected an object");
  const Json* index = member(choice, "index");
  if (index != nullptr && *index != 0) fault("choice " + describe(*index) + ", expected choice 0 alone");
  return &choice;
}

}  // namespace

void CompletionStream::event(std::string_view data, Time now) {
  started_ = true;
  if (done_) return;
  if (data == "[DONE]") {
    if (output_.finish_reason.empty()) fault("[DONE] without a finish_reason before it");
    done_ = true;
    return;
  }
  const std::optional<Json> event = try_parse_json(data);
  if (!event || !event->is_object()) fault("an event that is not a JSON object: " + in_quotes(data));
  if (const Json* error = member(*event, "error")) {
    throw Error(Error::bad_value, "the server says: " + error_message(*error));
  }
  if (const Json* usage = member(*event, "usage")) count(*usage);
  const Json* choice = choice_of(*event);
  if (choice == nullptr) return;
  if (const Json* delta = member(*choice, "delta")) {
    if (!delta->is_object()) fault("\"delta\" is " + describe(*delta) + ", expected an object");
    const std::string text = text_of(*delta, "content");
    piece(text_of(*delta, "reasoning_content"), now);
    piece(text, now);
    output_.text += text;
  }
  const std::string reason = text_of(*choice, "finish_reason");
  if (reason.empty()) return;
  if (reason != "stop" && reason != "length") {
    fault(fmt::format(R"(finish_reason is {}, expected "stop" or "length")", in_quotes(reason)));
  }
  output_.finish_reason = reason;
}

void CompletionStream::count(const Json& usage) {
  if (!usage.is_object()) fault("\"usage\" is " + describe(usage) + ", expected an object");
  const Json* tokens = member(usage, "completion_tokens");
  if (tokens == nullptr) return;
  const bool whole = tokens->is_number_unsigned() && tokens->get<std::uint64_t>() <= INT64_MAX;
  if (!whole || tokens->get<std::int64_t>() > max_tokens_) {
    fault(fmt::format("usage counts {} completion tokens, expected an integer from 0 to the {} asked for",
                      describe(*tokens), max_tokens_));
  }
  counted_ = tokens->get<std::int64_t>();
}

void CompletionStream::piece(const std::string& text, Time now) {
  if (text.empty()) return;
  if (!output_.finish_reason.empty()) fault("text behind its finish_reason");
  // A piece is of one token or more.
  if (static_cast<std::int64_t>(output_.tokens.size()) >= max_tokens_) {
    fault(fmt::format("more than the {} tokens asked for", max_tokens_));
  }
  if (!first_) first_ = now;
  last_ = now;
  const auto number = static_cast<std::int32_t>(numbers_.size());
  output_.tokens.push_back(numbers_.try_emplace(text, number).first->second);
}

ArmOutput CompletionStream::finish() {
  if (counted_ == 0 && !output_.tokens.empty()) fault("usage counts 0 completion tokens of an answer that has text");
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
