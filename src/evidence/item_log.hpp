#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "evidence/ab_schedule.hpp"

namespace qpn8 {

/// One output of one arm, as a line of items.jsonl holds it.
struct ItemRecord {
  std::int64_t index = 0;  ///< of the item in its data set
  std::string id;
  ArmName arm = ArmName::a;
  std::uint64_t seed = 0;          ///< the comparison's
  std::uint64_t request_seed = 0;  ///< seed + index
  std::int64_t order = 0;          ///< when it ran: position among all outputs of the comparison
  std::string answer;              ///< the text; several turns are joined by a blank line
  std::optional<std::int64_t> value;
  std::optional<std::int64_t> last_number;
  std::optional<std::int64_t> expected;
  std::optional<bool> correct;  ///< nothing where nothing is expected
  bool invalid = false;         ///< no value where one is expected, or no text at all
  bool truncated = false;       ///< ended by its length
  std::string finish_reason;
  std::int64_t output_tokens = 0;
  std::optional<std::string> token_hash;              ///< nothing for an arm that tells no ids
  std::optional<std::int64_t> first_divergent_token;  ///< from A's output; nothing if equal, unknown, or A itself
  double repeated_4gram = 0.0;
  std::int64_t replacement_chars = 0;
  std::int64_t nul_chars = 0;
  double ttft_ms = 0.0;
  double decode_tokens_per_s = 0.0;  ///< 0 for fewer than two tokens
  int retries = 0;
  std::vector<std::int32_t> output_ids;  ///< empty for an arm that tells none
};

nlohmann::ordered_json to_json(const ItemRecord& record);

/// Error::bad_value naming the key that is missing or of another type.
ItemRecord parse_item_record(const nlohmann::ordered_json& json);

/// The outputs of one item under one seed, by ArmName.
using ItemRecords = std::array<ItemRecord, 3>;

/// items.jsonl: what has been run. An item's lines are written together and flushed, so that a killed run loses the
/// item in flight and no more.
class ItemLog {
 public:
  /// Starts anew, or (`resume`) takes over the items that an earlier run finished. A last line that was torn off and
  /// an item that lacks arms do not count; any other line that is not an item's, and an output that is there twice, is
  /// Error::bad_file. The file itself is left as it is until open().
  ItemLog(std::filesystem::path file, bool resume);

  const std::filesystem::path& file() const { return file_; }

  /// In the order of the file.
  const std::vector<ItemRecords>& items() const { return items_; }

  /// Makes the file hold the items and nothing else, replacing what it held.
  void open();

  /// Opens the file if that has not been done. Error::bad_file if the line cannot be written (a full disk).
  void append(const ItemRecords& records);

 private:
  void load();

  std::filesystem::path file_;
  std::vector<ItemRecords> items_;
  std::ofstream stream_;
};

}  // namespace qpn8
