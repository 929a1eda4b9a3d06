#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "kernels/cuda/qpn8_kernel.cuh"

namespace qpn8::cuda {

/// The kernels of a list of forms, for 1 and 8 rows, channel scales and, where chunks fit blocks of 128, block scales.
template <bool kResident, std::size_t kCount, const std::array<FixedForm, kCount>& kForms>
class KernelTable {
 public:
  static LinearKernel find(const KernelForm& form) { return find(form, std::make_index_sequence<kCount>()); }

 private:
  template <std::size_t... kIndex>
  static LinearKernel find(const KernelForm& form, std::index_sequence<kIndex...>) {
    LinearKernel found = nullptr;
    ((found = found != nullptr ? found : match<kIndex>(form)), ...);
    return found;
  }

  template <std::size_t kIndex>
  static LinearKernel match(const KernelForm& form) {
    if (kForms[kIndex] != FixedForm{form.unit_tiles, form.chunk, form.warps}) return nullptr;
    if (form.rows == 1) return of_scales<1, kIndex>(form.scales);
    return form.rows == 8 ? of_scales<8, kIndex>(form.scales) : nullptr;
  }

  template <int kRows, std::size_t kIndex>
  static LinearKernel of_scales(ScaleMode scales) {
    constexpr FixedForm kForm = kForms[kIndex];
    if (scales == ScaleMode::channel) {
      return linear<kRows, kForm.unit_tiles, ScaleMode::channel, kForm.chunk_steps, kResident, kForm.warps>;
    }
    if constexpr (kForm.chunk_steps % 4 == 0 || kForm.chunk_steps == 2) {
      if (scales == ScaleMode::aligned_block) {
        return linear<kRows, kForm.unit_tiles, ScaleMode::aligned_block, kForm.chunk_steps, kResident, kForm.warps>;
      }
    }
    return nullptr;
  }
};

}  // namespace qpn8::cuda
