#include "kernels/cpu/gather_rows.hpp"

#include <cstring>

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

namespace qpn8::cpu {

void gather_rows(MatrixView<const std::byte> in, std::span<const std::int32_t> rows, MatrixView<std::byte> out,
                 ThreadTeam& team) {
  check(in.cols == out.cols && static_cast<std::int64_t>(rows.size()) == out.rows, "a row is gathered for every index");
  // A copy moves about four bytes in the time an operator spends on an element.
  team.for_ranges(out.rows, row_grain(out.cols / 4), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::span<const std::byte> source = in.row(rows[static_cast<std::size_t>(i)]);
      if (!source.empty()) std::memcpy(out.row(i).data(), source.data(), source.size());
    }
  });
}

}  // namespace qpn8::cpu
