#include "evidence/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "base/json_file.hpp"
#include "base/json_lines.hpp"
#include "base/random.hpp"
#include "evidence/answer_parser.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

std::string item_id(const Json& row, std::int64_t index) {
  for (const char* key : {"id", "question_id"}) {
    const auto found = row.find(key);
    if (found == row.end()) continue;
    return found->is_string() ? found->get<std::string>() : found->dump();
  }
  return std::to_string(index);
}

std::vector<std::string> item_turns(const Json& row, const std::string& where) {
  const auto question = row.find("question");
  if (question != row.end() && question->is_string()) return {question->get<std::string>()};
  const auto turns = row.find("turns");
  if (turns == row.end() || !turns->is_array() || turns->empty()) {
    throw Error(Error::bad_file, where + R"(: expected "question" (a text) or "turns" (a list of texts))");
  }
  std::vector<std::string> texts;
  for (const Json& turn : *turns) {
    if (!turn.is_string()) {
      throw Error(Error::bad_file, fmt::format("{}: \"turns\" holds {}, expected texts", where, describe(turn)));
    }
    texts.push_back(turn.get<std::string>());
  }
  return texts;
}

std::optional<std::int64_t> item_answer(const Json& row, const std::string& where) {
  const auto answer = row.find("answer");
  const bool needed = row.contains("question");
  if (answer == row.end() || answer->is_null()) {
    if (needed) throw Error(Error::bad_file, where + R"(: no "answer"; expected a text that ends in "#### N")");
    return std::nullopt;
  }
  const std::optional<std::int64_t> expected = parse_gold(*answer);
  if (!expected) {
    throw Error(Error::bad_file,
                where + R"(: "answer" has no integer that can be read; expected a text that ends in "#### N")");
  }
  return expected;
}

}  // namespace

std::vector<DatasetItem> read_dataset(std::istream& stream, const std::string& name) {
  std::vector<DatasetItem> items;
  for_each_json_line(stream, name, [&](const Json& row, std::int64_t line) {
    const std::string where = line_name(name, line);
    DatasetItem item;
    item.index = static_cast<std::int64_t>(items.size());
    item.id = item_id(row, item.index);
    item.turns = item_turns(row, where);
    item.is_question = row.contains("question");
    item.expected = item_answer(row, where);
    items.push_back(std::move(item));
  });
  if (items.empty()) throw Error(Error::bad_file, name + ": no rows; expected one JSON object a line");
  return items;
}

std::vector<DatasetItem> load_dataset(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream || std::filesystem::is_directory(file)) {
    throw Error(Error::bad_file, file.string() + ": cannot be opened; expected a JSON lines file");
  }
  return read_dataset(stream, file.string());
}

std::optional<std::uint64_t> ItemSelection::parse_order(const std::string& text) {
  if (text == "sequential") return std::nullopt;
  static constexpr std::string_view kShuffle = "shuffle:";
  if (text.starts_with(kShuffle)) {
    std::uint64_t seed = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + kShuffle.size(), end, seed);
    if (error == std::errc() && stop == end) return seed;
  }
  throw Error(Error::bad_argument, fmt::format("--order {}: expected sequential or shuffle:SEED", text));
}

std::string ItemSelection::order_text() const {
  return shuffle_seed ? fmt::format("shuffle:{}", *shuffle_seed) : "sequential";
}

std::vector<DatasetItem> select_items(std::vector<DatasetItem> items, const ItemSelection& selection) {
  const auto count = static_cast<std::int64_t>(items.size());
  if (selection.start < 0 || selection.start >= count) {
    throw Error(Error::bad_argument, fmt::format("--start {}: the data set has {} items; expected 0 to {}",
                                                 selection.start, count, count - 1));
  }
  if (selection.limit && *selection.limit < 1) {
    throw Error(Error::bad_argument, fmt::format("--limit {}: expected at least 1", *selection.limit));
  }
  if (selection.shuffle_seed) {
    Random random(*selection.shuffle_seed);
    shuffle(items, random);
  }
  const std::int64_t taken = std::min(selection.limit.value_or(count), count - selection.start);
  const auto first = items.begin() + selection.start;
  return {std::make_move_iterator(first), std::make_move_iterator(first + taken)};
}

void append_instruction(std::vector<DatasetItem>& items, const std::string& instruction) {
  if (instruction.empty()) return;
  for (DatasetItem& item : items) {
    if (item.is_question) item.turns.front() += "\n" + instruction;
  }
}

}  // namespace qpn8
