#pragma once

#include "kernels/cuda/qpn8_kernel.cuh"

namespace qpn8::cuda {

template <int kUnitTilesOf, int kChunkOf>
struct Form {
  static constexpr int kUnitTiles = kUnitTilesOf;
  static constexpr int kChunk = kChunkOf;
};

/// The kernels of a list of forms, for 1 and 8 rows, channel scales and, where chunks fit blocks of 128, block scales.
template <bool kResident, class... Forms>
struct KernelTable {
  static LinearKernel find(const KernelForm& form) {
    LinearKernel found = nullptr;
    ((found = found != nullptr ? found : match<Forms>(form)), ...);
    return found;
  }

 private:
  template <class F>
  static LinearKernel match(const KernelForm& form) {
    if (form.unit_tiles != F::kUnitTiles || form.chunk != F::kChunk) return nullptr;
    if (form.rows == 1) return of_scales<1, F>(form.scales);
    return form.rows == 8 ? of_scales<8, F>(form.scales) : nullptr;
  }

  template <int kRows, class F>
  static LinearKernel of_scales(ScaleMode scales) {
    if (scales == ScaleMode::channel) return linear<kRows, F::kUnitTiles, ScaleMode::channel, F::kChunk, kResident>;
    if constexpr (F::kChunk % 4 == 0 || F::kChunk == 2) {
      if (scales == ScaleMode::aligned_block) {
        return linear<kRows, F::kUnitTiles, ScaleMode::aligned_block, F::kChunk, kResident>;
      }
    }
    return nullptr;
  }
};

}  // namespace qpn8::cuda
