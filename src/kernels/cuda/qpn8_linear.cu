#include "base/check.hpp"
#include "kernels/cuda/check.hpp"
#include "kernels/cuda/qpn8_linear.hpp"
#include "qpn8/schedule.hpp"

namespace qpn8::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kWarpSize = 32;
constexpr int kRows = 8;  // columns of the B operand

// E4M3 bits in FP16 position read as value / 256; the missing 2^8 is multiplied into the sum with the scale.
constexpr float kDecodeFactor = 256.0F;

/// Two codes, the lower 16 bits of the argument, as two FP16 numbers.
__device__ unsigned decode_pair(unsigned codes) {
  const unsigned spread = (codes & 0xffU) << 8 | (codes & 0xff00U) << 16;
  return (spread & 0x80008000U) | (spread & 0x7f007f00U) >> 1;
}

__device__ void multiply_accumulate(float (&sum)[4], unsigned low, unsigned high, unsigned x0, unsigned x1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(decode_pair(low)), "r"(decode_pair(high)), "r"(decode_pair(low >> 16)), "r"(decode_pair(high >> 16)),
        "r"(x0), "r"(x1));
}

struct Product {
  PackedLayout weight;
  const __half* x;
  long x_stride;
  int rows;
  const float* bias;
  ProductOutput y;
};

// A block computes one tile of 16 channels. Its warps take the steps of k in turn, so that neighbouring loads run
// together, and their sums meet in shared memory in the order of the warps.
template <bool kBlockScales>
__global__ void __launch_bounds__(kWarps* kWarpSize) multiply(const Product p) {
  __shared__ float partial[kWarps][kFragmentChannels][kRows];
  const int warp = threadIdx.x / kWarpSize;
  const int lane = threadIdx.x % kWarpSize;
  const int group = lane / 4;
  const int quad = lane % 4;
  const long tile = blockIdx.x;
  const int steps = static_cast<int>(p.weight.steps());
  const uint4* codes = reinterpret_cast<const uint4*>(p.weight.codes) + tile * steps * kWarpSize + lane;
  const __half* x = p.x + group * p.x_stride + quad * 8;
  const float* scales = p.weight.scales;
  if (kBlockScales) {
    scales += tile * kFragmentChannels / p.weight.block_n * ((p.weight.k + p.weight.block_k - 1) / p.weight.block_k);
  }
  float sum[4] = {};
  for (int step = warp; step < steps; step += kWarps) {
    const uint4 w = codes[static_cast<long>(step) * kWarpSize];
    uint4 v = {};
    if (group < p.rows && step * kFragmentStep + quad * 8 < p.weight.k) {
      v = *reinterpret_cast<const uint4*>(x + step * kFragmentStep);
    }
    if (kBlockScales) {
      float part[4] = {};
      multiply_accumulate(part, w.x, w.y, v.x, v.y);
      multiply_accumulate(part, w.z, w.w, v.z, v.w);
      const float scale = scales[step * kFragmentStep / p.weight.block_k];
      for (int i = 0; i < 4; ++i) sum[i] = fmaf(part[i], scale, sum[i]);
    } else {
      multiply_accumulate(sum, w.x, w.y, v.x, v.y);
      multiply_accumulate(sum, w.z, w.w, v.z, v.w);
    }
  }
  for (int i = 0; i < 4; ++i) partial[warp][group + i / 2 * 8][quad * 2 + i % 2] = sum[i];
  __syncthreads();
  const int channel = threadIdx.x % kFragmentChannels;
  const int row = threadIdx.x / kFragmentChannels;
  const long n = tile * kFragmentChannels + channel;
  if (row >= p.rows || n >= p.y.n) return;
  float total = 0.0F;
  for (int w = 0; w < kWarps; ++w) total += partial[w][channel][row];
  total *= kBlockScales ? kDecodeFactor : kDecodeFactor * scales[n];
  if (p.bias != nullptr) total += p.bias[n];
  const long at = row * p.y.stride + n;
  if (p.y.dtype == DType::f32) {
    static_cast<float*>(p.y.data)[at] = total;
  } else {
    static_cast<__half*>(p.y.data)[at] = __float2half_rn(total);
  }
}

}  // namespace

void qpn8_linear(const PackedLayout& weight, const __half* x, std::int64_t x_stride, int rows, const float* bias,
                 const ProductOutput& y, cudaStream_t stream) {
  check(rows >= 1 && rows <= kMaxPackedRows && y.n <= weight.n, "a packed product has 1 to 8 rows");
  check(x_stride % 8 == 0, "rows of x are 16-byte aligned");
  const auto tiles = static_cast<unsigned>(weight.n / kFragmentChannels);
  const auto kernel = weight.scale_kind == ScaleKind::block ? multiply<true> : multiply<false>;
  kernel<<<tiles, kWarps * kWarpSize, 0, stream>>>({weight, x, x_stride, rows, bias, y});
  check_launch("qpn8_linear");
}

}  // namespace qpn8::cuda
