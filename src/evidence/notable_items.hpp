#pragma once

#include <span>
#include <string>
#include <vector>

#include "evidence/item_log.hpp"

namespace qpn8 {

/// An item that a reader should look at, and why.
struct NotableItem {
  const ItemRecords* records = nullptr;  ///< into the items it was found in
  std::string why;
};

/// Items that only one of A and B got right, in the order of the run.
std::vector<NotableItem> discordant_items(std::span<const ItemRecords> items);

/// Items far from the others, in the order of the run: a decode ratio or a change of length more than three
/// interquartile ranges outside the quartiles (Tukey's far fences), and outputs of B that are invalid, truncated,
/// repetitive or hold U+FFFD or NUL where A's do not.
std::vector<NotableItem> outlying_items(std::span<const ItemRecords> items);

}  // namespace qpn8
