#pragma once

// The packed product of sm_70: y = x W^T for 1 to 8 rows of x and an E4M3 weight, with m8n8k4, which works in four quad
// pairs of eight threads. Free of every header, so that NVRTC compiles it alone: scripts/sm70.sh does.
//
// Layout of the codes: [n / 32 tiles][k / 16 groups][32 lanes][16 bytes]. A lane's 16 bytes are one channel at 16
// consecutive k: channel 32 tile + 8 ((lane / 4) % 4) + lane % 4 + 4 (lane / 16), which is the column of the operand B
// that the lane holds. Word j of the four is k = 4 j .. 4 j + 3 in the byte order {2, 0, 3, 1}: one shift a pair
// decodes two codes at once.
//
// A block computes one tile. Its split_k warps share k; a lane adds up `chains` independent sums, and the warps' sums
// meet in shared memory in the order of the warps. No atomics: the same bits every time.

namespace qpn8::cuda {

inline constexpr int kQuadPairColumns = 32;
inline constexpr int kQuadPairGroup = 16;  ///< k a lane loads at once
inline constexpr int kQuadPairRows = 8;
inline constexpr int kQuadPairLanes = 32;
inline constexpr int kQuadPairSums = 8;  ///< FP32 sums a lane and chain
inline constexpr int kTileSums = kQuadPairRows * kQuadPairColumns;
inline constexpr int kMaxSplit = 32;  ///< warps a block
inline constexpr int kMaxSegments = 4;
inline constexpr float kQuadPairFactor = 256.0F;  ///< a code's bits in FP16 position read as value / 256

/// Where a range of the output channels goes: FP16, rows `stride` apart, channel `first` at the start of each.
struct QuadPairSegment {
  unsigned short* y;
  int first;
  int end;
  long stride;
};

struct QuadPairArgs {
  const unsigned char* codes;
  const float* scales;
  const unsigned short* x;  ///< FP16, rows 16-byte aligned
  long x_stride;            ///< elements from row to row
  long product_x;           ///< elements from one independent product to the next
  int rows;
  int k;
  int tiles;     ///< of one product
  int products;  ///< independent products in one launch; their channels follow each other in y
  int split;
  int block_n;  ///< block scales: channels and k a block
  int block_k;
  int segments;
  QuadPairSegment segment[kMaxSegments];
  const unsigned short* rider;  ///< FP16 [rider_channels, k]: a small dense product of the same x, or null
  int rider_channels;           ///< its outputs follow those of the packed weight
};

__device__ inline float half_to_float(unsigned bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(bits)));
  return value;
}

__device__ inline unsigned short float_to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// The upper byte of each half of `codes` as an FP16 number of value / 256: exact, subnormals included.
__device__ inline unsigned decode_upper_bytes(unsigned codes) {
  return (codes & 0x80008000U) | (codes >> 1 & 0x3f803f80U);
}

/// sum += x (8 rows of 4 k, every quad pair the same) times 8 channels of 4 k a quad pair.
__device__ inline void multiply_quads(float (&sum)[kQuadPairSums], unsigned x0, unsigned x1, unsigned codes) {
  asm("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9},{%10,%11},"
      "{%0,%1,%2,%3,%4,%5,%6,%7};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7])
      : "r"(x0), "r"(x1), "r"(decode_upper_bytes(codes)), "r"(decode_upper_bytes(codes << 8)));
}

/// One channel value of one row to its segment.
__device__ inline void store_output(const QuadPairArgs& p, int row, int channel, float value) {
  for (int s = 0; s < p.segments; ++s) {
    const QuadPairSegment& to = p.segment[s];
    if (channel >= to.first && channel < to.end) to.y[row * to.stride + channel - to.first] = float_to_half(value);
  }
}

/// One warp's part of one tile: the groups [first, first + count) of k.
template <int kChains, bool kPrefetch, bool kBlockScales>
class QuadPairWarp {
 public:
  __device__ QuadPairWarp(const QuadPairArgs& p, int product, int first, int count)
      : args_(p), lane_(static_cast<int>(threadIdx.x) % kQuadPairLanes), first_(first), count_(count) {
    const int row = lane_ % 4 + lane_ / 16 * 4;
    has_row_ = row < p.rows;
    x_ = p.x + product * p.product_x + (has_row_ ? row : 0) * p.x_stride + first * kQuadPairGroup;
  }

  /// The sums of tile `tile`, counted over all products.
  __device__ void run(int tile, float (&total)[kQuadPairSums]) const {
    const int groups = args_.k / kQuadPairGroup;
    const uint4* codes = reinterpret_cast<const uint4*>(args_.codes) +
                         (static_cast<long>(tile) * groups + first_) * kQuadPairLanes + lane_;
    float chain[kChains][kQuadPairSums] = {};
    for (float& sum : total) sum = 0;
    uint4 next = {};
    if (kPrefetch) next = codes[0];
    for (int group = 0; group < count_; ++group) {
      uint4 now;
      if (kPrefetch) {
        now = next;
        if (group + 1 < count_) next = codes[(group + 1) * kQuadPairLanes];
      } else {
        now = codes[group * kQuadPairLanes];
      }
      add_group(group, now, chain);
      if (kBlockScales && ends_block(group)) fold(chain, block_scale(tile, group), total);
    }
    if (!kBlockScales) fold(chain, 1.0F, total);
  }

 private:
  __device__ void add_group(int group, const uint4& codes, float (&chain)[kChains][kQuadPairSums]) const {
    uint4 low = {};
    uint4 high = {};
    if (has_row_) {
      const uint4* x = reinterpret_cast<const uint4*>(x_ + group * kQuadPairGroup);
      low = x[0];
      high = x[1];
    }
    multiply_quads(chain[0], low.x, low.y, codes.x);
    multiply_quads(chain[1 % kChains], low.z, low.w, codes.y);
    multiply_quads(chain[2 % kChains], high.x, high.y, codes.z);
    multiply_quads(chain[3 % kChains], high.z, high.w, codes.w);
  }

  /// total += chains * scale, and the chains begin again.
  __device__ static void fold(float (&chain)[kChains][kQuadPairSums], float scale, float (&total)[kQuadPairSums]) {
    for (int i = 0; i < kQuadPairSums; ++i) {
      float sum = chain[0][i];
      if (kChains == 2) sum += chain[1 % kChains][i];
      if (kChains == 4) sum = (sum + chain[1 % kChains][i]) + (chain[2 % kChains][i] + chain[3 % kChains][i]);
      total[i] = fmaf(sum, scale, total[i]);
      for (int c = 0; c < kChains; ++c) chain[c][i] = 0;
    }
  }

  __device__ bool ends_block(int group) const {
    return group + 1 == count_ || (first_ + group + 1) * kQuadPairGroup % args_.block_k == 0;
  }

  /// A quad pair's eight channels lie within one block, whose edge is at least 16.
  __device__ float block_scale(int tile, int group) const {
    const int channel = tile * kQuadPairColumns + lane_ / 4 % 4 * 8;
    const int blocks = (args_.k + args_.block_k - 1) / args_.block_k;
    return args_.scales[channel / args_.block_n * blocks + (first_ + group) * kQuadPairGroup / args_.block_k];
  }

  const QuadPairArgs& args_;
  int lane_;
  int first_;
  int count_;
  bool has_row_;
  const unsigned short* x_;
};

/// Puts a lane's sums where their row and column are: [8 rows][32 columns].
__device__ inline void put_sums(const float (&sum)[kQuadPairSums], float* tile) {
  const int lane = static_cast<int>(threadIdx.x) % kQuadPairLanes;
  const int column = lane / 4 % 4 * 8 + (lane & 2);
  const int row = (lane & 1) + lane / 16 * 4;
  for (int i = 0; i < kQuadPairSums; ++i)
    tile[(row + (i & 2)) * kQuadPairColumns + column + (i & 4) + (i & 1)] = sum[i];
}

/// The sum over the warps, in their order, with the factors of decode and channel.
template <bool kBlockScales>
__device__ float finished(const QuadPairArgs& p, const float* sums, int at, int channel) {
  float sum = sums[at];
  for (int warp = 1; warp < p.split; ++warp) sum += sums[warp * kTileSums + at];
  sum *= kQuadPairFactor;
  return kBlockScales ? sum : sum * p.scales[channel];
}

/// A warp a channel of the dense rider: lanes stride over k, their sums meet in a fixed tree.
__device__ inline void ride(const QuadPairArgs& p, int first_channel) {
  const int lane = static_cast<int>(threadIdx.x) % kQuadPairLanes;
  const int channel = first_channel + static_cast<int>(threadIdx.x) / kQuadPairLanes;
  if (channel >= p.rider_channels) return;
  const unsigned short* weight = p.rider + static_cast<long>(channel) * p.k;
  for (int row = 0; row < p.rows; ++row) {
    const unsigned short* x = p.x + row * p.x_stride;
    float sum = 0;
    for (int k = lane; k < p.k; k += kQuadPairLanes) sum = fmaf(half_to_float(weight[k]), half_to_float(x[k]), sum);
    for (int offset = kQuadPairLanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    if (lane == 0) store_output(p, row, p.products * p.tiles * kQuadPairColumns + channel, sum);
  }
}

/// Grid: a block a tile of every product, then blocks of split warps for the rider. Shared memory: split tiles of sums.
template <int kChains, bool kPrefetch, bool kBlockScales>
__global__ void __launch_bounds__(kMaxSplit* kQuadPairLanes) quad_pair(const QuadPairArgs p) {
  extern __shared__ float sums[];
  const int tile = static_cast<int>(blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / kQuadPairLanes;
  if (tile >= p.tiles * p.products) {
    ride(p, (tile - p.tiles * p.products) * p.split);
    return;
  }
  const int part = p.k / kQuadPairGroup / p.split;
  float sum[kQuadPairSums];
  QuadPairWarp<kChains, kPrefetch, kBlockScales>(p, tile / p.tiles, warp * part, part).run(tile, sum);
  put_sums(sum, sums + warp * kTileSums);
  __syncthreads();
  for (int at = static_cast<int>(threadIdx.x); at < kTileSums; at += static_cast<int>(blockDim.x)) {
    const int row = at / kQuadPairColumns;
    const int channel = tile * kQuadPairColumns + at % kQuadPairColumns;
    if (row < p.rows) store_output(p, row, channel, finished<kBlockScales>(p, sums, at, channel));
  }
}

/// silu(gate) * up, for a weight whose channels are those of gate and then those of up. Both stay FP32 until the end,
/// where the dense route rounds each to FP16. Grid: a block a tile of gate. Shared memory: 2 split tiles of sums.
template <int kChains, bool kPrefetch, bool kBlockScales>
__global__ void __launch_bounds__(kMaxSplit* kQuadPairLanes) quad_pair_gate_up(const QuadPairArgs p) {
  extern __shared__ float sums[];
  const int tile = static_cast<int>(blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / kQuadPairLanes;
  const int half_tiles = p.tiles / 2;
  const int part = p.k / kQuadPairGroup / p.split;
  const QuadPairWarp<kChains, kPrefetch, kBlockScales> work(p, 0, warp * part, part);
  for (int half = 0; half < 2; ++half) {
    float sum[kQuadPairSums];
    work.run(tile + half * half_tiles, sum);
    put_sums(sum, sums + (half * p.split + warp) * kTileSums);
  }
  __syncthreads();
  for (int at = static_cast<int>(threadIdx.x); at < kTileSums; at += static_cast<int>(blockDim.x)) {
    const int row = at / kQuadPairColumns;
    const int channel = tile * kQuadPairColumns + at % kQuadPairColumns;
    if (row >= p.rows) continue;
    const float gate = finished<kBlockScales>(p, sums, at, channel);
    const int up_channel = channel + half_tiles * kQuadPairColumns;
    const float up = finished<kBlockScales>(p, sums + p.split * kTileSums, at, up_channel);
    store_output(p, row, channel, gate / (1.0F + expf(-gate)) * up);
  }
}

}  // namespace qpn8::cuda
