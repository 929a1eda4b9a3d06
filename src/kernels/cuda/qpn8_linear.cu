#include "kernels/cuda/qpn8_linear.hpp"

#include "base/check.hpp"
#include "kernels/cuda/packed_tile.cuh"
#include "qpn8/schedule.hpp"

namespace qpn8::cuda {
namespace {

__global__ void __launch_bounds__(kProductThreads)
    multiply(PackedLayout weight, const __half* x, long x_stride, int rows, const float* bias, ProductOutput y) {
  wait_for_earlier_kernels();
  const long tile = blockIdx.x;
  const long first_channel = tile * kFragmentChannels;
  const TileSum sum = packed_tile(weight, tile, x, x_stride, rows);
  write_tile(sum, first_channel, rows, kDecodeFactor, channel_scales(weight, tile),
             bias == nullptr ? nullptr : bias + first_channel, y);
}

}  // namespace

void qpn8_linear(const PackedLayout& weight, const __half* x, std::int64_t x_stride, int rows, const float* bias,
                 const ProductOutput& y, cudaStream_t stream) {
  check(rows >= 1 && rows <= kMaxPackedRows && y.n <= weight.n, "a packed product has 1 to 8 rows");
  check(x_stride % 8 == 0, "rows of x are 16-byte aligned");
  launch("qpn8_linear", multiply, dim3(blocks_for(weight.n, kFragmentChannels)), kProductThreads, 0,
         {.handle = stream, .overlaps = false}, weight, x, x_stride, rows, bias, y);
}

}  // namespace qpn8::cuda
