#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace qpn8 {

/// One problem of a data set.
struct DatasetItem {
  std::int64_t index = 0;                ///< position among the file's rows, from 0, whatever order they are run in
  std::string id;                        ///< the row's "id" or "question_id", else its index
  std::vector<std::string> turns;        ///< what the user says, turn by turn; at least one
  std::optional<std::int64_t> expected;  ///< the right answer; nothing if the data set has none
  bool is_question = false;              ///< from "question": one turn that asks for a number
};

/// Reads JSON lines in GSM8K's schema ({"question", "answer"}, the answer ending in "#### N") or with "turns", a list
/// of texts, and an optional "answer".
///
/// Error::bad_file "FILE:LINE: ..." for a row that is neither and for an answer that does not parse, since an item
/// nobody can get right would lower both arms unseen. A file without rows is an error too.
std::vector<DatasetItem> load_dataset(const std::filesystem::path& file);

/// The file's text, which read_dataset takes: for who must know what was read, since a pipe can be read but once and a
/// file may change between two readings.
std::string read_dataset_text(const std::filesystem::path& file);

/// The same from a stream; `name` is for messages.
std::vector<DatasetItem> read_dataset(std::istream& stream, const std::string& name);

/// What is asked after each question, so that the answer can be found in the output: the wording that boxed answers are
/// usually asked for with.
inline constexpr const char* kBoxedInstruction =
    "Please reason step by step, and put your final answer within \\boxed{}.";

/// Ends each question (not the turns of a conversation) with a line break and the instruction; nothing if it is empty.
void append_instruction(std::vector<DatasetItem>& items, const std::string& instruction);

/// Which items are run, in which order.
struct ItemSelection {
  std::int64_t start = 0;                     ///< items left out at the front, after shuffling
  std::optional<std::int64_t> limit;          ///< most items, after shuffling
  std::optional<std::uint64_t> shuffle_seed;  ///< absent: the file's order

  /// "sequential" or "shuffle:SEED"; Error::bad_argument "--order ..." otherwise.
  static std::optional<std::uint64_t> parse_order(const std::string& text);
  std::string order_text() const;
};

/// Error::bad_argument if nothing is left, naming the flag and how many items there are.
std::vector<DatasetItem> select_items(std::vector<DatasetItem> items, const ItemSelection& selection);

}  // namespace qpn8
