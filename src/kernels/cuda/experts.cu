#include "base/check.hpp"
#include "kernels/cuda/dense_tile.cuh"
#include "kernels/cuda/experts.hpp"
#include "kernels/cuda/packed_tile.cuh"

namespace qpn8::cuda {
namespace {

constexpr int kThreads = 256;

template <bool kEights>
__global__ void __launch_bounds__(kProductThreads) multiply(ExpertTable table, MatrixView<const __half> x, long shared,
                                                            const std::int32_t* ids, MatrixView<__half> y) {
  wait_for_earlier_kernels();
  const long route = blockIdx.y;
  const long tile = blockIdx.x;
  const long first_channel = tile * kFragmentChannels;
  const ExpertWeight& weight = table.experts[ids[route]];
  const __half* row = x.data + route / shared * x.stride;
  const ProductOutput out = {y.data + route * y.stride, DType::f16, table.n, y.stride};
  if (weight.packed.codes != nullptr) {
    const TileSum sum = packed_tile(weight.packed, tile, row, x.stride, 1);
    write_tile(sum, first_channel, 1, kDecodeFactor, channel_scales(weight.packed, tile), nullptr, out);
  } else {
    const TileSum sum =
        dense_tile<kEights>(weight.dense, TileChannels(first_channel, kPairChannels), PlainRows{row, x.stride, 1});
    write_tile(sum, first_channel, 1, 1.0F, nullptr, nullptr, out);
  }
}

__global__ void __launch_bounds__(kThreads)
    combine(MatrixView<const __half> outputs, MatrixView<const std::int32_t> ids, const float* weights,
            MatrixView<__half> out) {
  wait_for_earlier_kernels();
  const long i = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
  const long token = blockIdx.y;
  if (i >= out.cols) return;
  const int routes = static_cast<int>(ids.cols);
  const std::int32_t* chosen = ids.data + token * routes;
  float sum = 0.0F;
  int last = -1;
  for (int done = 0; done < routes; ++done) {
    int next = -1;
    for (int j = 0; j < routes; ++j) {
      if (chosen[j] > last && (next < 0 || chosen[j] < chosen[next])) next = j;
    }
    last = chosen[next];
    const long route = token * routes + next;
    sum = fmaf(weights[route], __half2float(outputs.data[route * outputs.stride + i]), sum);
  }
  out.data[token * out.stride + i] = __float2half_rn(sum);
}

}  // namespace

void expert_products(const ExpertTable& table, MatrixView<const __half> x, std::int64_t shared, const std::int32_t* ids,
                     MatrixView<__half> y, const Stream& stream) {
  check(x.cols == table.k && y.cols == table.n && x.rows * shared == y.rows, "operands of the routes fit");
  const dim3 grid(blocks_for(table.n, kFragmentChannels), static_cast<unsigned>(y.rows));
  const auto kernel = table.k % 8 == 0 && x.stride % 8 == 0 ? multiply<true> : multiply<false>;
  launch("expert_products", kernel, {grid, kProductThreads}, stream, table, x, shared, ids, y);
}

void combine_routes(MatrixView<const __half> outputs, MatrixView<const std::int32_t> ids, const float* weights,
                    MatrixView<__half> out, const Stream& stream) {
  const dim3 grid(blocks_for(out.cols, kThreads), static_cast<unsigned>(out.rows));
  launch("combine_routes", combine, {grid, kThreads}, stream, outputs, ids, weights, out);
}

}  // namespace qpn8::cuda
