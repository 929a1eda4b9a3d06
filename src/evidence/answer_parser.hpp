#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace qpn8 {

// How an integer answer is read out of a model's text. Values outside int64 and values that are not whole are "no
// answer", never a neighbouring integer.

/// The answer of a text: what its last \boxed{...} holds, or, if it boxes nothing, its last number.
///
/// A box must hold one number and nothing else but markup (\text{}, \$, \, and braces) and a unit after it; "12.5" or
/// "about twelve" in a box is no answer, and the text around the box is not consulted. A box that the text ends in
/// counts as closed there.
std::optional<std::int64_t> parse_answer(std::string_view text);

/// The last number of the text, boxes or not: the other reading, by which a fault of format shows as one.
///
/// Thousands may be grouped by commas; a currency sign may stand before or after the sign; U+2212 is a minus; a minus
/// right after a letter or a digit ("3-5", "COVID-19") is a hyphen; a whole number may have zero decimals ("29.00").
std::optional<std::int64_t> parse_last_number(std::string_view text);

/// The right answer of a data set's row: an integer; or a text with "#### N", or one that is a number as a whole.
/// Nothing if it does not parse, which is an error of the data set.
std::optional<std::int64_t> parse_gold(const nlohmann::ordered_json& answer);

}  // namespace qpn8
