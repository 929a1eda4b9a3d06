#pragma once

#include <functional>
#include <string_view>

#include "base/json_view.hpp"

// Normalisers, pre-tokenisers, post-processors and decoders are each a tree of components in tokenizer.json whose inner
// nodes have the type "Sequence". They are read as the flat list that they run as.

namespace qpn8::text {

/// Calls `leaf(type, view)` for each component under `view` that is not a Sequence, in the order in which they run.
///
/// A null has none. `members` is the key of a Sequence's list. Deeper nesting than any tokenizer needs is
/// Error::bad_file.
void for_each_component(const JsonView& view, std::string_view members,
                        const std::function<void(std::string_view, const JsonView&)>& leaf);

/// Error::unsupported naming the component's type.
[[noreturn]] void refuse_component(const JsonView& view, std::string_view type);

}  // namespace qpn8::text
