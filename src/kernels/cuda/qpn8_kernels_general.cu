#include "kernels/cuda/qpn8_kernel.cuh"

namespace qpn8::cuda {
namespace {

template <int kRows, int kUnitTiles>
LinearKernel of_scales(ScaleMode scales) {
  return scales == ScaleMode::channel ? linear<kRows, kUnitTiles, ScaleMode::channel, 0, false, kLinearWarps>
                                      : linear<kRows, kUnitTiles, ScaleMode::block, 0, false, kLinearWarps>;
}

template <int kRows>
LinearKernel of_rows(const KernelForm& form) {
  return form.unit_tiles == 1   ? of_scales<kRows, 1>(form.scales)
         : form.unit_tiles == 2 ? of_scales<kRows, 2>(form.scales)
                                : of_scales<kRows, 4>(form.scales);
}

}  // namespace

LinearKernel find_general_kernel(const KernelForm& form) {
  return form.rows == 1 ? of_rows<1>(form) : form.rows == 8 ? of_rows<8>(form) : of_rows<16>(form);
}

}  // namespace qpn8::cuda
