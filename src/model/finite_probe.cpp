#include "model/finite_probe.hpp"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "qpn8/error.hpp"

namespace qpn8 {

void FiniteProbe::require(const Tensor& values, const std::string& where) {
  const Tensor found = found_.tensor.row_range(0, values.rows);
  backend_.find_non_finite(values, found);
  std::vector<std::int32_t> first(static_cast<std::size_t>(values.rows));
  backend_.read(found, std::as_writable_bytes(std::span(first)));
  for (std::size_t row = 0; row < first.size(); ++row) {
    if (first[row] < 0) continue;
    throw Error(Error::check_failed, fmt::format("{}: output {} of row {} is not finite", where, first[row], row));
  }
}

}  // namespace qpn8
