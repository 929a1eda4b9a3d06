#pragma once

#include <cuda_fp16.h>

// The tensor-core product of E4M3 codes with FP16 activations (sm_80 and later), and the decode in front of it.

namespace qpn8::cuda {

/// What a sum over decoded codes must be multiplied by. From sm_89 on the hardware converts E4M3; before it the bits
/// are shifted into FP16 position, which reads as value / 256. Both are exact, and so is the factor.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
inline constexpr float kDecodeFactor = 1.0F;
#else
inline constexpr float kDecodeFactor = 256.0F;
#endif

/// Two codes, the lower half of the argument, as two FP16 numbers (times 1 / kDecodeFactor).
__device__ inline unsigned decode_pair(unsigned codes) {
#if __CUDA_ARCH__ >= 890
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<unsigned short>(codes)));
  return pair;
#else
  const unsigned spread = (codes & 0xffU) << 8 | (codes & 0xff00U) << 16;
  return (spread & 0x80008000U) | (spread & 0x7f007f00U) >> 1;
#endif
}

/// sum += 16 channels (operand A, 8 codes a lane in two words) times 8 rows of x (operand B) over 16 k.
///
/// Lane 4 g + q holds in sum[0], sum[1] channel g of rows 2 q, 2 q + 1 and in sum[2], sum[3] channel g + 8.
__device__ inline void multiply_accumulate(float (&sum)[4], unsigned low, unsigned high, unsigned x0, unsigned x1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(decode_pair(low)), "r"(decode_pair(high)), "r"(decode_pair(low >> 16)), "r"(decode_pair(high >> 16)),
        "r"(x0), "r"(x1));
}

}  // namespace qpn8::cuda
