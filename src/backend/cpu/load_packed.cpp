#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>

#include "backend/cpu/load_linear.hpp"
#include "backend/cpu/weight_part.hpp"
#include "base/check.hpp"
#include "qpn8/error.hpp"
#include "qpn8/half.hpp"
#include "qpn8/pack.hpp"

namespace qpn8::cpu {
namespace {

RowSource::Type row_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return RowSource::Type::f32;
    case DType::f16:
      return RowSource::Type::f16;
    default:
      check(dtype == DType::bf16, "weights that are quantised are F32, F16 or BF16");
      return RowSource::Type::bf16;
  }
}

/// Runs a packing and gives its errors the names that packing does not know.
template <class Pack>
PackedWeight with_names(const LinearSource& source, const Pack& pack) {
  try {
    return pack();
  } catch (const std::bad_alloc&) {
    const TensorDesc& planned = source.plan->tensor;
    throw Error(Error::missing_capability, fmt::format("{}: {} bytes of memory are needed, more than the system gives",
                                                       source.plan->name, planned.n * planned.k));
  } catch (const Error& error) {
    // Packing counts rows over all parts; a user knows them by tensor.
    if (error.kind() == Error::bad_value) {
      for (const WeightPart& part : source.parts) require_finite(part);
    }
    throw Error(error.kind(), fmt::format("{}: {}", source.plan->name, error.what()));
  }
}

PackedWeight quantise(const LinearSource& source, std::int64_t padded, ThreadTeam& team) {
  const std::int64_t k = source.plan->tensor.k;
  const std::int64_t padding = padded - source.plan->tensor.n + source.zero_rows;
  std::vector<RowSource> rows;
  for (const WeightPart& part : source.parts) {
    rows.push_back({row_type(part.weight->dtype), row_bytes(part, 0), part.rows, part.weight->cols()});
  }
  // All channels of padding are one row of zeros.
  const std::vector<Half> zeros(static_cast<std::size_t>(padding > 0 ? k : 0));
  if (padding > 0) rows.push_back({RowSource::Type::f16, zeros.data(), padding, 0});
  return with_names(source, [&] { return pack_channelwise(rows, k, team); });
}

PackedWeight pack_codes_as_they_are(const LinearSource& source, std::int64_t padded, ThreadTeam& team) {
  const std::int64_t k = source.plan->tensor.k;
  std::vector<Matrix<float>> scales;
  std::vector<BlockSource> blocks;
  for (const WeightPart& part : source.parts) {
    scales.push_back(decode_block_scales(part));
    const auto* codes = reinterpret_cast<const std::uint8_t*>(row_bytes(part, 0));
    blocks.push_back({.codes = {codes, part.rows, part.cols, part.weight->cols()},
                      .scales = scales.back().view(),
                      .first_row = part.first_row,
                      .first_col = part.first_col});
  }
  return with_names(source, [&] { return pack_blockwise(blocks, k, padded, team); });
}

PackedWeight pack(const LinearSource& source, std::int64_t padded, ThreadTeam& team) {
  const auto fp8 = std::count_if(source.parts.begin(), source.parts.end(), is_fp8);
  if (fp8 == 0) return quantise(source, padded, team);
  if (fp8 == static_cast<std::ptrdiff_t>(source.parts.size())) return pack_codes_as_they_are(source, padded, team);
  throw Error(Error::unsupported,
              fmt::format("{}: some of its tensors are F8_E4M3 and some are not; one kind is needed (or --qpn8 off)",
                          source.plan->name));
}

}  // namespace

std::unique_ptr<PackedLinear> load_packed(const LinearSource& source, ThreadTeam& team) {
  const PlannedProjection& plan = *source.plan;
  const std::int64_t padded = std::max(plan.padded_n, plan.tensor.n);
  PackedWeight weight = pack(source, padded, team);
  for (const WeightPart& part : source.parts) release_rows(*source.checkpoint, part, 0, part.rows);
  return std::make_unique<PackedLinear>(std::move(weight), plan.schedule, plan.tensor.n, source.bias);
}

}  // namespace qpn8::cpu
