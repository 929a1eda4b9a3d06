#include "text/component.hpp"

#include <fmt/format.h>

#include "base/printable.hpp"

namespace qpn8::text {
namespace {

using Leaf = std::function<void(std::string_view, const JsonView&)>;

void walk(const JsonView& view, std::string_view members, const Leaf& leaf, int depth) {
  constexpr int kDeepest = 16;
  if (depth > kDeepest) view.fail(fmt::format("Sequence components are nested deeper than {}", kDeepest));
  const std::string& type = view["type"].text();
  if (type != "Sequence") return leaf(type, view);
  for (const JsonView& member : view[members].items()) walk(member, members, leaf, depth + 1);
}

}  // namespace

void for_each_component(const JsonView& view, std::string_view members, const Leaf& leaf) {
  if (!view.is_null()) walk(view, members, leaf, 0);
}

void refuse_component(const JsonView& view, std::string_view type) {
  view.fail(Error::unsupported, fmt::format("the component {} is not supported", in_quotes(type)));
}

}  // namespace qpn8::text
