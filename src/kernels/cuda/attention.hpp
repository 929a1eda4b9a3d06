#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/heads.hpp"
#include "kernels/cuda/kv_layer.hpp"
#include "kernels/cuda/stream.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8::cuda {

/// Positions that one block sums; also the unit in which a sum is split, counted from position 0.
inline constexpr std::int64_t kAttentionSplit = 64;

struct AttentionRule {
  std::int64_t heads = 0;
  float scale = 1.0F;       ///< multiplies q.k
  std::int64_t window = 0;  ///< a row sees itself and the window - 1 positions before it; 0: all before it
};

/// Bytes of scratch memory that attention of that many rows over `splits` splits needs.
std::size_t attention_scratch_bytes(std::int64_t rows, std::int64_t heads, std::int64_t head_dim, std::int64_t splits);

/// What attention has beside its operands.
struct AttentionScratch {
  float* memory = nullptr;  ///< attention_scratch_bytes()
  /// At least (largest position of a row) / kAttentionSplit + 1; more cost launches of idle blocks and change no bit,
  /// so that a recorded launch serves later positions too.
  std::int64_t splits = 1;
};

/// Causal attention of q [rows, heads * head_dim] over what the layer holds at the rows' places, themselves included.
/// head_dim is a multiple of 4, at most kMaxHeadDim. Softmax in FP32. A row's bits depend on its own query and its
/// sequence alone.
void attention(const KvLayer& layer, MatrixView<const __half> q, const RowPlaces& places, const AttentionRule& rule,
               const AttentionScratch& scratch, MatrixView<__half> out, const Stream& stream);

/// process_heads() and attention() in one launch, with the same bits, for rows of which no two are of the same
/// sequence: heads.works are q, k and v, in this order; q is left as it was.
///
/// earlier_stored: the cache holds all earlier positions, and `places` its values, before the first kernel of the pass
/// begins, so that they are read before the kernels that come before this one have ended.
void attention_with_heads(const HeadWorks& heads, std::int64_t rows, const AttentionRule& rule,
                          const AttentionScratch& scratch, bool earlier_stored, MatrixView<__half> out,
                          const Stream& stream);

}  // namespace qpn8::cuda
