#include "kernels/cpu/ngram_rows.hpp"

#include <array>

#include "base/check.hpp"
#include "kernels/cpu/embed.hpp"
#include "kernels/cpu/grain.hpp"

namespace qpn8::cpu {
namespace {

constexpr std::size_t kMostOrders = 16;

/// The tokens that count for one row, its own first.
using Tokens = std::array<std::int64_t, kMostOrders>;

template <class TokenAt>
Tokens counted_tokens(const NgramRule& rule, std::int64_t position, const TokenAt& token_at) {
  Tokens tokens = {};
  tokens[0] = token_at(position);
  bool cut = false;
  for (std::size_t s = 1; s < rule.multipliers.size(); ++s) {
    const std::int64_t place = position - static_cast<std::int64_t>(s);
    const std::int64_t token = place < 0 || cut ? rule.boundary : token_at(place);
    cut = cut || token == rule.boundary;
    tokens[s] = token;
  }
  return tokens;
}

/// Calls use(head, row) for every head.
template <class Use>
void for_each_row(const NgramRule& rule, const Tokens& tokens, const Use& use) {
  const std::size_t orders = rule.multipliers.size();
  const std::size_t heads = rule.sizes.size() / (orders - 1);
  std::int64_t mixed = tokens[0] * rule.multipliers[0];
  for (std::size_t n = 1; n < orders; ++n) {
    mixed ^= tokens[n] * rule.multipliers[n];
    for (std::size_t head = (n - 1) * heads; head < n * heads; ++head) {
      use(head, mixed % rule.sizes[head] + rule.offsets[head]);
    }
  }
}

}  // namespace

void ngram_rows(const NgramTable& table, const NgramRule& rule, std::span<const std::int32_t> ids,
                const RowPlaces& places, const TokenHistory& history, MatrixView<float> out, ThreadTeam& team) {
  const std::size_t orders = rule.multipliers.size();
  check(orders >= 2 && orders <= kMostOrders && rule.sizes.size() % (orders - 1) == 0 &&
            out.cols == static_cast<std::int64_t>(rule.sizes.size()) * table.width &&
            out.rows == static_cast<std::int64_t>(ids.size()) &&
            history.per_slot >= static_cast<std::int64_t>(orders) - 1,
        "shapes of n-grams agree");
  const auto token_of = [&](std::size_t t, std::int64_t position) -> std::int64_t {
    const std::int64_t back = places.positions[t] - position;
    if (back <= static_cast<std::int64_t>(t)) {
      const std::size_t there = t - static_cast<std::size_t>(back);
      if (places.slots[there] == places.slots[t] && places.positions[there] == position) return ids[there];
    }
    return history.tokens[places.slots[t] * history.per_slot + position % history.per_slot];
  };
  team.for_ranges(out.rows, row_grain(out.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const auto at = static_cast<std::size_t>(t);
      check(places.slots[at] >= 0 && places.slots[at] < history.slots, "a row has a place");
      const Tokens tokens =
          counted_tokens(rule, places.positions[at], [&](std::int64_t position) { return token_of(at, position); });
      for_each_row(rule, tokens, [&](std::size_t head, std::int64_t row) {
        const std::byte* part = table.parts[static_cast<std::size_t>(row / table.rows_a_part)];
        const EmbeddingTable rows = {table.dtype, part, table.rows_a_part, table.width, table.width};
        embed_row(
            rows, row % table.rows_a_part,
            out.row(t).subspan(head * static_cast<std::size_t>(table.width), static_cast<std::size_t>(table.width)));
      });
    }
  });
  for (std::size_t t = 0; t < ids.size(); ++t) {
    history.tokens[places.slots[t] * history.per_slot + places.positions[t] % history.per_slot] = ids[t];
  }
}

std::vector<std::int64_t> ngram_rows_reference(const NgramRule& rule, std::span<const std::int32_t> tokens) {
  std::vector<std::int64_t> rows(rule.sizes.size());
  const auto token_at = [&](std::int64_t position) { return std::int64_t{tokens[static_cast<std::size_t>(position)]}; };
  for_each_row(rule, counted_tokens(rule, static_cast<std::int64_t>(tokens.size()) - 1, token_at),
               [&](std::size_t head, std::int64_t row) { rows[head] = row; });
  return rows;
}

}  // namespace qpn8::cpu
