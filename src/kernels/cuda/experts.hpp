#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/dense_linear.hpp"
#include "kernels/cuda/packed_layout.hpp"
#include "kernels/cuda/stream.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8::cuda {

/// The weight of one expert: packed, or dense if `packed.codes` is null.
struct ExpertWeight {
  PackedLayout packed;
  DenseWeight dense;
};

/// One weight of every expert, in device memory; all have the same shape.
struct ExpertTable {
  const ExpertWeight* experts = nullptr;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// y[r] = W_e x[r / shared], e = ids[r], for every route r: a route is a pair of a token and one of its experts, and
/// `shared` routes in a row read the same row of x. Needs no look at the ids by the host; a weight is read once a
/// route, which suits few tokens. A row's bits do not depend on the others.
void expert_products(const ExpertTable& table, MatrixView<const __half> x, std::int64_t shared, const std::int32_t* ids,
                     MatrixView<__half> y, const Stream& stream);

/// out[t] = sum over the routes of token t of weights * outputs, in order of rising expert, FP32. ids [tokens, routes a
/// token] and weights lie without gaps.
void combine_routes(MatrixView<const __half> outputs, MatrixView<const std::int32_t> ids, const float* weights,
                    MatrixView<__half> out, const Stream& stream);

}  // namespace qpn8::cuda
