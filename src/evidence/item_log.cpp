#include "evidence/item_log.hpp"

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/json_lines.hpp"
#include "base/printable.hpp"
#include "base/regular_file.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
void read(const Json& json, const char* key, T& value) {
  try {
    value = json.at(key).get<T>();
  } catch (const Json::exception&) {
    throw Error(Error::bad_value, fmt::format("\"{}\" is missing or of another type", key));
  }
}

template <class T>
void read(const Json& json, const char* key, std::optional<T>& value) {
  if (json.contains(key) && json.at(key).is_null()) {
    value.reset();
    return;
  }
  T present{};
  read(json, key, present);
  value = std::move(present);
}

/// A text with bytes that are not UTF-8 is written with U+FFFD in their place rather than not at all.
std::string to_line(const ItemRecord& record) {
  return to_json(record).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// The text without a last line that has no end: what a killed process leaves.
std::string without_torn_line(std::string text) {
  const std::size_t end = text.rfind('\n');
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

}  // namespace

Json to_json(const ItemRecord& record) {
  return {{"index", record.index},
          {"id", record.id},
          {"arm", to_string(record.arm)},
          {"seed", record.seed},
          {"request_seed", record.request_seed},
          {"order", record.order},
          {"answer", record.answer},
          {"value", optional_json(record.value)},
          {"last_number", optional_json(record.last_number)},
          {"expected", optional_json(record.expected)},
          {"correct", optional_json(record.correct)},
          {"invalid", record.invalid},
          {"truncated", record.truncated},
          {"finish_reason", record.finish_reason},
          {"output_tokens", record.output_tokens},
          {"token_hash", optional_json(record.token_hash)},
          {"first_divergent_token", optional_json(record.first_divergent_token)},
          {"repeated_4gram", record.repeated_4gram},
          {"replacement_chars", record.replacement_chars},
          {"nul_chars", record.nul_chars},
          {"ttft_ms", record.ttft_ms},
          {"decode_tokens_per_s", record.decode_tokens_per_s},
          {"retries", record.retries},
          {"output_ids", record.output_ids}};
}

ItemRecord parse_item_record(const Json& json) {
  ItemRecord record;
  std::string arm;
  read(json, "arm", arm);
  const std::optional<ArmName> name = parse_arm_name(arm);
  if (!name) throw Error(Error::bad_value, fmt::format(R"("arm" is {}, expected a, b or aa)", in_quotes(arm)));
  record.arm = *name;
  read(json, "index", record.index);
  read(json, "id", record.id);
  read(json, "seed", record.seed);
  read(json, "request_seed", record.request_seed);
  read(json, "order", record.order);
  read(json, "answer", record.answer);
  read(json, "value", record.value);
  read(json, "last_number", record.last_number);
  read(json, "expected", record.expected);
  read(json, "correct", record.correct);
  read(json, "invalid", record.invalid);
  read(json, "truncated", record.truncated);
  read(json, "finish_reason", record.finish_reason);
  read(json, "output_tokens", record.output_tokens);
  read(json, "token_hash", record.token_hash);
  read(json, "first_divergent_token", record.first_divergent_token);
  read(json, "repeated_4gram", record.repeated_4gram);
  read(json, "replacement_chars", record.replacement_chars);
  read(json, "nul_chars", record.nul_chars);
  read(json, "ttft_ms", record.ttft_ms);
  read(json, "decode_tokens_per_s", record.decode_tokens_per_s);
  read(json, "retries", record.retries);
  read(json, "output_ids", record.output_ids);
  return record;
}

ItemLog::ItemLog(std::filesystem::path file, bool resume) : file_(std::move(file)) {
  if (resume && std::filesystem::exists(file_)) load();
  std::string kept;
  for (const ItemRecords& records : items_) {
    for (const ItemRecord& record : records) kept += to_line(record);
  }
  write_file(file_, kept);
  stream_.open(file_, std::ios::binary | std::ios::app);
}

void ItemLog::load() {
  std::istringstream lines(without_torn_line(read_file(file_)));

  std::map<std::pair<std::uint64_t, std::int64_t>, std::array<std::optional<ItemRecord>, 3>> found;
  std::vector<std::pair<std::uint64_t, std::int64_t>> order;
  for_each_json_line(lines, file_.string(), [&](const Json& json, std::int64_t line) {
    try {
      ItemRecord record = parse_item_record(json);
      const auto key = std::pair(record.seed, record.index);
      if (!found.contains(key)) order.push_back(key);
      found[key][static_cast<std::size_t>(record.arm)] = std::move(record);
    } catch (const Error& error) {
      throw Error(Error::bad_file, line_name(file_.string(), line) + ": " + error.what());
    }
  });
  for (const auto& key : order) {
    auto& [a, b, aa] = found[key];
    if (a && b && aa) items_.push_back({std::move(*a), std::move(*b), std::move(*aa)});
  }
}

void ItemLog::append(const ItemRecords& records) {
  std::string lines;
  for (const ItemRecord& record : records) lines += to_line(record);
  stream_ << lines << std::flush;
  if (!stream_) throw Error(Error::bad_file, file_.string() + ": cannot be written; is the disk full?");
  items_.push_back(records);
}

}  // namespace qpn8
