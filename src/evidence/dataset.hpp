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
};

/// Reads JSON lines in GSM8K's schema ({"question", "answer"}, the answer ending in "#### N") or with "turns", a list
/// of texts, and an optional "answer".
///
/// Error::bad_file "FILE:LINE: ..." for a row that is neither and for an answer that does not parse, since an item
/// nobody can get right would lower both arms unseen. A file without rows is an error too.
std::vector<DatasetItem> load_dataset(const std::filesystem::path& file);

/// The same from a stream; `name` is for messages.
std::vector<DatasetItem> read_dataset(std::istream& stream, const std::string& name);

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
