#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backend/cpu/load_linear.hpp"
#include "backend/cpu/weight_part.hpp"
#include "qpn8/error.hpp"
#include "quant/e2m1.hpp"

namespace qpn8::cpu {
namespace {

constexpr std::int64_t kCodesPerByte = 2;

/// Copies the part's columns, `per_byte` of which lie in one, of each of its rows.
void copy_rows(const WeightPart& part, const CheckpointTensor& tensor, std::int64_t per_byte, std::byte* to,
               ThreadTeam& team) {
  const std::int64_t width = part.cols / per_byte;
  team.for_ranges(part.rows, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t from = (part.first_row + row) * tensor.cols() + part.first_col / per_byte;
      std::memcpy(to + row * width, tensor.bytes.data() + from, static_cast<std::size_t>(width));
    }
  });
}

void require_numbers(const WeightPart& part, std::span<const std::byte> scales) {
  const auto bad = std::find(scales.begin(), scales.end(), std::byte{0xff});
  if (bad == scales.end()) return;
  const std::int64_t index = bad - scales.begin();
  const std::int64_t width = part.cols / kFp4Group;
  throw Error(Error::bad_value,
              fmt::format("{}: row {} column {} is not a finite number", part.block_scales->name,
                          part.first_row + index / width, part.first_col / kFp4Group + index % width));
}

void require_whole_groups(const LinearSource& source, const WeightPart& part) {
  if (part.first_col % kFp4Group == 0 && part.cols % kFp4Group == 0) return;
  throw Error(Error::unsupported,
              fmt::format("{}: columns {} to {} of {} cut a scale's {} inputs; a --tp that does not is needed",
                          source.plan->name, part.first_col, part.first_col + part.cols, part.weight->name, kFp4Group));
}

}  // namespace

std::unique_ptr<Fp4Linear> load_fp4(const LinearSource& source, ThreadTeam& team) {
  const TensorDesc& planned = source.plan->tensor;
  const std::int64_t code_bytes = planned.k / kCodesPerByte;
  const std::int64_t scale_bytes = planned.k / kFp4Group;
  Buffer codes = allocate_buffer(size_product({planned.n, code_bytes}, source.plan->name), source.plan->name);
  Buffer scales = allocate_buffer(size_product({planned.n, scale_bytes}, source.plan->name), source.plan->name);
  std::int64_t first_row = 0;
  for (const WeightPart& part : source.parts) {
    require_whole_groups(source, part);
    std::byte* part_scales = scales.data() + first_row * scale_bytes;
    copy_rows(part, *part.weight, kCodesPerByte, codes.data() + first_row * code_bytes, team);
    copy_rows(part, *part.block_scales, kFp4Group, part_scales, team);
    require_numbers(part, {part_scales, static_cast<std::size_t>(part.rows * scale_bytes)});
    source.checkpoint->release(*part.weight, part.weight->bytes);
    first_row += part.rows;
  }
  return std::make_unique<Fp4Linear>(planned.n, planned.k, std::move(codes), std::move(scales), source.bias);
}

}  // namespace qpn8::cpu
