#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backend/cpu/load_linear.hpp"
#include "backend/cpu/weight_part.hpp"
#include "base/check.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "qpn8/half.hpp"

namespace qpn8::cpu {
namespace {

DType widest_type(std::span<const WeightPart> parts) {
  const DType first = parts.empty() ? DType::f32 : parts.front().weight->dtype;
  const bool uniform =
      std::all_of(parts.begin(), parts.end(), [&](const WeightPart& part) { return part.weight->dtype == first; });
  return uniform && first != DType::f8_e4m3 ? first : DType::f32;
}

float float_at(DType dtype, const std::byte* row, std::int64_t i) {
  switch (dtype) {
    case DType::f32:
      return reinterpret_cast<const float*>(row)[i];
    case DType::f16:
      return to_float(reinterpret_cast<const Half*>(row)[i]);
    case DType::bf16:
      return to_float(reinterpret_cast<const BFloat16*>(row)[i]);
    default:
      return decode_e4m3(std::to_integer<std::uint8_t>(row[i]));
  }
}

/// Copies one part, row by row, into its place in the stacked matrix.
class PartCopier {
 public:
  PartCopier(const WeightPart& part, DType dtype, std::byte* target) : part_(part), dtype_(dtype), target_(target) {
    if (is_fp8(part)) scales_ = decode_block_scales(part);
  }

  /// Error::bad_value naming the tensor and the row for a value that is not finite.
  void copy(std::int64_t row) const {
    const std::byte* source = row_bytes(part_, row);
    if (first_non_finite(part_.weight->dtype, source, part_.cols) >= 0) require_finite(part_);
    std::byte* target = target_ + row * part_.cols * static_cast<std::int64_t>(size_of(dtype_));
    if (dtype_ == part_.weight->dtype) {
      std::memcpy(target, source, static_cast<std::size_t>(part_.cols) * size_of(dtype_));
    } else {
      widen(row, source, reinterpret_cast<float*>(target));
    }
  }

 private:
  void widen(std::int64_t row, const std::byte* source, float* target) const {
    for (std::int64_t i = 0; i < part_.cols; ++i) target[i] = float_at(part_.weight->dtype, source, i);
    if (!is_fp8(part_)) return;
    const std::int64_t block_row = (part_.first_row + row) / kScaleBlock;
    for (std::int64_t i = 0; i < part_.cols; ++i) target[i] *= scales_(block_row, (part_.first_col + i) / kScaleBlock);
  }

  const WeightPart& part_;
  DType dtype_;
  std::byte* target_;
  Matrix<float> scales_;
};

/// Copies all rows of a part in parallel, releasing the checkpoint's pages every few hundred of them.
void copy_part(const Checkpoint& checkpoint, const WeightPart& part, DType dtype, std::byte* target, ThreadTeam& team) {
  constexpr std::int64_t kReleasedBytes = std::int64_t{4} << 20;
  const PartCopier copier(part, dtype, target);
  const std::int64_t row_size = std::max<std::int64_t>(1, part.cols * static_cast<std::int64_t>(size_of(dtype)));
  const std::int64_t step = std::max<std::int64_t>(1, kReleasedBytes / row_size);
  team.for_ranges(part.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += step) {
      const std::int64_t last = std::min(end, first + step);
      for (std::int64_t row = first; row < last; ++row) copier.copy(row);
      release_rows(checkpoint, part, first, last - first);
    }
  });
  release_rows(checkpoint, part, 0, part.rows);  // the pages that two steps shared
}

}  // namespace

std::unique_ptr<DenseLinear> load_dense(const LinearSource& source, ThreadTeam& team) {
  const TensorDesc& planned = source.plan->tensor;
  const DType dtype = widest_type(source.parts);
  const auto width = static_cast<std::int64_t>(size_of(dtype));
  Buffer memory = allocate_buffer(size_product({planned.n, planned.k, width}, source.plan->name), source.plan->name);
  std::int64_t first_row = 0;
  for (const WeightPart& part : source.parts) {
    copy_part(*source.checkpoint, part, dtype, memory.data() + first_row * planned.k * width, team);
    first_row += part.rows;
  }
  const DenseWeightView view = {.dtype = dtype, .data = memory.data(), .n = planned.n, .k = planned.k};
  return std::make_unique<DenseLinear>(view, std::move(memory), source.bias);
}

OwnedTensor load_table(const Checkpoint& checkpoint, const CheckpointTensor& tensor, ThreadTeam& team) {
  if (tensor.dtype != DType::f32 && tensor.dtype != DType::f16 && tensor.dtype != DType::bf16) {
    throw Error(Error::unsupported, fmt::format("{}: a table of type {}; F32, F16 or BF16 is needed", tensor.name,
                                                to_string(tensor.dtype)));
  }
  const WeightPart part = {.weight = &tensor, .rows = tensor.rows(), .cols = tensor.cols()};
  const auto width = static_cast<std::int64_t>(size_of(tensor.dtype));
  auto memory = std::make_unique<HostMemory>(
      allocate_buffer(size_product({part.rows, part.cols, width}, tensor.name), tensor.name));
  copy_part(checkpoint, part, tensor.dtype, memory->data(), team);
  return {{tensor.dtype, part.rows, part.cols, part.cols, memory->data()}, std::move(memory)};
}

}  // namespace qpn8::cpu
