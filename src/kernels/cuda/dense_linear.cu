#include "base/check.hpp"
#include "kernels/cuda/dense_tile.cuh"
#include "qpn8/schedule.hpp"

namespace qpn8::cuda {
namespace {

template <bool kEights>
__global__ void __launch_bounds__(kProductThreads)
    multiply(DenseWeight weight, const __half* x, long x_stride, int rows, const float* bias, ProductOutput y) {
  const long first_channel = static_cast<long>(blockIdx.x) * kFragmentChannels;
  const TileSum sum = dense_tile<kEights>(weight, first_channel, x, x_stride, rows);
  write_tile(sum, first_channel, rows, 1.0F, nullptr, bias == nullptr ? nullptr : bias + first_channel, y);
}

}  // namespace

void dense_linear(const DenseWeight& weight, const __half* x, std::int64_t x_stride, int rows, const float* bias,
                  const ProductOutput& y, const Stream& stream) {
  check(rows >= 1 && rows <= kMaxPackedRows && y.n == weight.n, "a product of few rows has 1 to 8");
  const auto kernel = weight.k % 8 == 0 && x_stride % 8 == 0 ? multiply<true> : multiply<false>;
  launch("dense_linear", kernel, dim3(blocks_for(weight.n, kFragmentChannels)), kProductThreads, 0, stream, weight, x,
         x_stride, rows, bias, y);
}

}  // namespace qpn8::cuda
