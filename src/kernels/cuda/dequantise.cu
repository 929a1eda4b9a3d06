#include "kernels/cuda/dequantise.hpp"
#include "kernels/cuda/packed_tile.cuh"

namespace qpn8::cuda {
namespace {

constexpr int kThreads = 256;

/// One code of a word of four, times a scale, as FP16 bits.
__device__ unsigned decode(unsigned word, int i, float scale) {
  const unsigned code = word >> i * 8 & 0xffU;
  const auto bits = static_cast<unsigned short>((code & 0x80U) << 8 | (code & 0x7fU) << 7);
  return __half_as_ushort(__float2half_rn(kDecodeFactor * __half2float(__ushort_as_half(bits)) * scale));
}

/// Four codes as two words of FP16 pairs.
__device__ uint2 decode_four(unsigned word, float scale) {
  return {decode(word, 0, scale) | decode(word, 1, scale) << 16, decode(word, 2, scale) | decode(word, 3, scale) << 16};
}

// A thread decodes the 16 codes of one lane of one step of a tile; blockIdx.y is the tile.
__global__ void __launch_bounds__(kThreads) decode_tiles(PackedLayout weight, long first_tile, MatrixView<__half> out) {
  wait_for_earlier_kernels();
  const long index = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
  const long steps = weight.steps();
  if (index >= steps * kWarpSize) return;
  const int lane = static_cast<int>(index % kWarpSize);
  const long first_k = index / kWarpSize * kFragmentStep + lane % 4 * 8;
  if (first_k >= weight.k) return;
  const long tile = first_tile + blockIdx.y;
  const uint4 codes = reinterpret_cast<const uint4*>(weight.codes)[tile * steps * kWarpSize + index];
  const bool blocks = weight.scale_kind == ScaleKind::block;
  const float scale = blocks ? scales_of_tile(weight, tile)[first_k / weight.block_k] : 1.0F;
  const auto store = [&](int channel, unsigned first, unsigned second) {
    const uint2 low = decode_four(first, scale);
    const uint2 high = decode_four(second, scale);
    const long row = static_cast<long>(blockIdx.y) * kFragmentChannels + channel;
    *reinterpret_cast<uint4*>(out.data + row * out.stride + first_k) = {low.x, low.y, high.x, high.y};
  };
  store(lane / 4, codes.x, codes.z);
  store(lane / 4 + 8, codes.y, codes.w);
}

__global__ void __launch_bounds__(kThreads) finish(MatrixView<const float> sums, StoredColumns columns,
                                                   const float* scales, const float* bias, ProductOutput y) {
  wait_for_earlier_kernels();
  const long i = static_cast<long>(blockIdx.x) * kThreads + threadIdx.x;
  const long row = blockIdx.y;
  if (i >= columns.count) return;
  const long stored = columns.first + i;
  const long channel = channel_stored_at(stored, columns.paired_half);
  float value = sums.data[row * sums.stride + i];
  if (scales != nullptr) value *= scales[stored];
  if (bias != nullptr) value += bias[channel];
  if (y.dtype == DType::f32) {
    static_cast<float*>(y.data)[row * y.stride + channel] = value;
  } else {
    static_cast<__half*>(y.data)[row * y.stride + channel] = __float2half_rn(value);
  }
}

}  // namespace

void dequantise(const PackedLayout& weight, std::int64_t first, MatrixView<__half> out, const Stream& stream) {
  const dim3 grid(blocks_for(weight.steps() * kWarpSize, kThreads),
                  static_cast<unsigned>(out.rows / kFragmentChannels));
  launch("dequantise", decode_tiles, {grid, kThreads}, stream, weight, first / kFragmentChannels, out);
}

void scale_columns(MatrixView<const float> sums, const StoredColumns& columns, const float* scales, const float* bias,
                   const ProductOutput& y, const Stream& stream) {
  const dim3 grid(blocks_for(columns.count, kThreads), static_cast<unsigned>(sums.rows));
  launch("scale_columns", finish, {grid, kThreads}, stream, sums, columns, scales, bias, y);
}

}  // namespace qpn8::cuda
