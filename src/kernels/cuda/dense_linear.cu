#include "base/check.hpp"
#include "kernels/cuda/dense_tile.cuh"
#include "kernels/cuda/eight_inputs.cuh"
#include "qpn8/schedule.hpp"

namespace qpn8::cuda {
namespace {

// Rows of x that are not normalised are copied all the same while several blocks still share a multiprocessor: their
// latency is there once, and not at every step.
constexpr std::size_t kStagedBytes = 32 * 1024;

/// Rows of x that a block copies into its shared memory, where kNormalises normalised. A row is added up by all
/// threads, and its warps' sums in order, so that its bits do not depend on the other rows.
template <bool kNormalises>
struct StagedRows {
  const __half* data;
  long stride;
  int rows;
  int k;  ///< a multiple of 8
  const float* norm;
  float eps;
  __half* shared;  ///< [rows, k]

  __device__ PlainRows get() const {
    __shared__ float sums[kProductRows][kProductWarps];
    for (int row = 0; row < rows; ++row) {
      float squares = 0.0F;
      for (int i = threadIdx.x * 8; i < k; i += kProductThreads * 8) {
        const uint4 eight = __ldcg(reinterpret_cast<const uint4*>(data + row * stride + i));
        eight_at(row, i) = eight;
        if (kNormalises) squares = add_squares(eight, squares);
      }
      if (kNormalises) squares = warp_sum(squares);
      if (kNormalises && threadIdx.x % kWarpSize == 0) sums[row][threadIdx.x / kWarpSize] = squares;
    }
    __syncthreads();
    if constexpr (kNormalises) {
      for (int row = 0; row < rows; ++row) {
        float total = 0.0F;
        for (int w = 0; w < kProductWarps; ++w) total += sums[row][w];
        const float scale = rsqrtf(total / static_cast<float>(k) + eps);
        for (int i = threadIdx.x * 8; i < k; i += kProductThreads * 8) {
          eight_at(row, i) = NormWeights(norm + i).scaled(eight_at(row, i), scale);
        }
      }
      __syncthreads();
    }
    return {shared, k, rows};
  }

  __device__ uint4& eight_at(int row, int i) const {
    return *reinterpret_cast<uint4*>(shared + static_cast<long>(row) * k + i);
  }
};

/// The first column that a block writes, and the channels that it multiplies.
struct Tile {
  long column;
  TileChannels channels;

  __device__ Tile(const DenseWeight& weight, bool gated)
      : column(static_cast<long>(blockIdx.x) * (gated ? kPairChannels : kFragmentChannels)),
        channels(column, gated ? weight.n / 2 : kPairChannels) {}
};

template <bool kEights>
__global__ void __launch_bounds__(kProductThreads)
    multiply(DenseWeight weight, ProductInput x, const float* bias, ProductOutput y) {
  const Tile tile(weight, y.end == ProductEnd::gate);
  const PlainRows rows = {x.data, x.stride, x.rows};
  const TileSum sum = dense_tile<kEights>(weight, tile.channels, rows);
  const __half added = added_to(y, tile.column + channel_of_thread(), x.rows);
  write_tile(sum, tile.column, x.rows, 1.0F, nullptr, bias == nullptr ? nullptr : bias + tile.column, y, added);
}

template <bool kNormalises>
__global__ void __launch_bounds__(kProductThreads)
    stage_and_multiply(DenseWeight weight, ProductInput x, const float* bias, ProductOutput y) {
  extern __shared__ __align__(16) unsigned char shared[];
  const Tile tile(weight, y.end == ProductEnd::gate);
  const int k = static_cast<int>(weight.k);
  const StagedRows<kNormalises> rows = {x.data, x.stride, x.rows, k, x.norm, x.eps, reinterpret_cast<__half*>(shared)};
  const int line = threadIdx.x * kPrefetchedFloats;
  if (kNormalises && line < k) prefetch_norm(x.norm + line);
  const TileSum sum = dense_tile<true>(weight, tile.channels, rows);
  const __half added = added_to(y, tile.column + channel_of_thread(), x.rows);
  write_tile(sum, tile.column, x.rows, 1.0F, nullptr, bias == nullptr ? nullptr : bias + tile.column, y, added);
}

std::int64_t row_bytes(const DenseWeight& weight) { return weight.k * static_cast<std::int64_t>(sizeof(__half)); }

}  // namespace

bool dense_can_normalise(const DenseWeight& weight, const DeviceLimits& device) {
  constexpr std::int64_t kOtherBytes = 16 * 1024;  // sums of the warps
  return weight.k % 8 == 0 && kMaxPackedRows * row_bytes(weight) + kOtherBytes <= device.block_shared_bytes;
}

void dense_linear(const DenseWeight& weight, const ProductInput& x, const float* bias, const ProductOutput& y,
                  const Stream& stream) {
  const bool gated = y.end == ProductEnd::gate;
  check(x.rows >= 1 && x.rows <= kMaxPackedRows && (gated ? 2 * y.n : y.n) == weight.n,
        "a product of few rows has 1 to 8");
  check(!gated || (weight.n % kFragmentChannels == 0 && bias == nullptr), "gate and up in whole eights");
  const dim3 grid(blocks_for(y.n, gated ? kPairChannels : kFragmentChannels));
  const bool eights = weight.k % 8 == 0 && x.stride % 8 == 0;
  const auto bytes = static_cast<std::size_t>(x.rows * row_bytes(weight));
  check(x.norm == nullptr || eights, "rows that are normalised are read in eights");
  if (eights && (x.norm != nullptr || bytes <= kStagedBytes)) {
    const auto staged = x.norm != nullptr ? stage_and_multiply<true> : stage_and_multiply<false>;
    launch("dense_linear", staged, {grid, kProductThreads, 0, bytes}, stream, weight, x, bias, y);
    return;
  }
  const auto kernel = eights ? multiply<true> : multiply<false>;
  launch("dense_linear", kernel, {grid, kProductThreads}, stream, weight, x, bias, y);
}

}  // namespace qpn8::cuda
