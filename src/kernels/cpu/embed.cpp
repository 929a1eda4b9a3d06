#include "kernels/cpu/embed.hpp"

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embed.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

template <class T>
void convert_row(const T* from, std::int64_t count, float* to) {
  for_vectors(static_cast<std::size_t>(count),
              [&](auto d, std::size_t i) HWY_ATTR { hn::StoreU(load_as_float(d, from + i), d, to + i); });
}

template <class T>
void embed_rows(const EmbeddingTable& table, const std::int32_t* ids, MatrixView<float> out) {
  const T* values = reinterpret_cast<const T*>(table.data);
  for (std::int64_t t = 0; t < out.rows; ++t) {
    convert_row(values + ids[t] * table.stride, table.cols, out.row(t).data());
  }
}

void embed_kernel(const EmbeddingTable& table, const std::int32_t* ids, MatrixView<float> out) {
  switch (table.dtype) {
    case DType::f32:
      return embed_rows<float>(table, ids, out);
    case DType::f16:
      return embed_rows<Half>(table, ids, out);
    case DType::bf16:
      return embed_rows<BFloat16>(table, ids, out);
    default:
      check(false, "an embedding table is F32, F16 or BF16");
  }
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(embed_kernel);

void embed(const EmbeddingTable& table, std::span<const std::int32_t> ids, MatrixView<float> out, ThreadTeam& team) {
  team.for_ranges(out.rows, row_grain(out.cols), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(embed_kernel)(table, ids.data() + begin, out.row_range(begin, end - begin));
  });
}

void embed_row(const EmbeddingTable& table, std::int64_t row, std::span<float> out) {
  const auto id = static_cast<std::int32_t>(row);
  HWY_DYNAMIC_DISPATCH(embed_kernel)(table, &id, {out.data(), 1, static_cast<std::int64_t>(out.size())});
}

namespace {

float value_at(const EmbeddingTable& table, std::int64_t index) {
  if (table.dtype == DType::f32) return reinterpret_cast<const float*>(table.data)[index];
  if (table.dtype == DType::f16) return to_float(reinterpret_cast<const Half*>(table.data)[index]);
  return to_float(reinterpret_cast<const BFloat16*>(table.data)[index]);
}

}  // namespace

void embed_reference(const EmbeddingTable& table, std::span<const std::int32_t> ids, MatrixView<float> out) {
  for (std::int64_t t = 0; t < out.rows; ++t) {
    for (std::int64_t i = 0; i < out.cols; ++i) {
      out.row(t)[static_cast<std::size_t>(i)] = value_at(table, ids[static_cast<std::size_t>(t)] * table.stride + i);
    }
  }
}

}  // namespace qpn8::cpu
#endif
