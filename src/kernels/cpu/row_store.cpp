#include "kernels/cpu/row_store.hpp"

#include "base/check.hpp"
#include "kernels/cpu/grain.hpp"
#include "qpn8/half.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_store.cpp"
#include <hwy/foreach_target.h>
//
#include "kernels/cpu/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {

template <class T>
void convert_row(std::span<const float> x, T* to) {
  for_vectors(x.size(), [&](auto d, std::size_t i) HWY_ATTR { store_rounded(d, hn::LoadU(d, x.data() + i), to + i); });
}

void store_row_kernel(std::span<const float> x, DType dtype, std::byte* to) {
  if (dtype == DType::f32) return convert_row(x, reinterpret_cast<float*>(to));
  convert_row(x, reinterpret_cast<Half*>(to));
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {

HWY_EXPORT(store_row_kernel);

void store_row(std::span<const float> x, const RowStore& store, std::int64_t slot, std::int64_t index) {
  check(slot >= 0 && slot < store.slots && index >= 0 && index < store.per_slot, "a row has a place");
  HWY_DYNAMIC_DISPATCH(store_row_kernel)(x, store.dtype, store.row(slot, index));
}

void store_rows(MatrixView<const float> x, const RowPlaces& places, const RowStore& store, ThreadTeam& team) {
  check(x.cols == store.width, "rows are as wide as the store");
  const auto is_replaced = [&](std::int64_t t) {
    const auto row = static_cast<std::size_t>(t);
    const auto later = static_cast<std::size_t>(t + store.per_slot);
    return t + store.per_slot < x.rows && places.slots[later] == places.slots[row] &&
           places.positions[later] == places.positions[row] + store.per_slot;
  };
  team.for_ranges(x.rows, row_grain(x.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      if (is_replaced(t)) continue;
      const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
      const std::int64_t position = places.positions[static_cast<std::size_t>(t)];
      check(position >= 0, "a row has a place");
      store_row(x.row(t), store, slot, position % store.per_slot);
    }
  });
}

const float* row_at(MatrixView<const float> x, const RowPlaces& places, const RowStore& kept, std::int64_t t,
                    std::int64_t position) {
  const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
  const std::int64_t there = t - (places.positions[static_cast<std::size_t>(t)] - position);
  const auto index = static_cast<std::size_t>(there);
  const bool in_batch = there >= 0 && places.slots[index] == slot && places.positions[index] == position;
  if (in_batch) return x.row(there).data();
  return reinterpret_cast<const float*>(kept.row(slot, position % kept.per_slot));
}

float value_at(const RowStore& store, std::int64_t slot, std::int64_t index, std::int64_t column) {
  const std::byte* row = store.row(slot, index);
  if (store.dtype == DType::f32) return reinterpret_cast<const float*>(row)[column];
  return to_float(reinterpret_cast<const Half*>(row)[column]);
}

}  // namespace qpn8::cpu
#endif
