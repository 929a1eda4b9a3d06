#pragma once

#include "backend/backend.hpp"
#include "backend/cuda/linear.hpp"
#include "backend/cuda/memory.hpp"

namespace qpn8::cuda {

/// The feed-forward experts of a layer, all routes of up to 64 tokens in a launch. Every route reads its weights by
/// itself: right for a decode step, and a prompt of many tokens reads each expert once a route instead of once.
class ExpertRunner {
 public:
  struct Call {
    const ExpertWeights& experts;
    MatrixView<const __half> x;
    MatrixView<const std::int32_t> ids;
    MatrixView<const float> weights;
    MatrixView<__half> out;
  };

  /// Allocates when a layer is seen first, and when a call is larger than all before;
  /// true if memory that an earlier call used has moved.
  bool run(const Call& call, const ProductContext& context);

 private:
  DeviceBuffer scratch_;
};

}  // namespace qpn8::cuda
