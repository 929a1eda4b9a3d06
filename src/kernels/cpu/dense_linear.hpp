#pragma once

#include <cstdint>

#include "base/dtype.hpp"
#include "qpn8/linear.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// A weight [n, k], row-major without gaps, in its stored precision: DType::f32, f16 or bf16. Somebody else's memory.
struct DenseWeightView {
  DType dtype = DType::f16;
  const void* data = nullptr;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// y = x W^T: x [m, k], y [m, n], FP32 both; the weight is converted in registers and accumulated in FP32.
///
/// m <= kMaxPackedRows: row i of an m-row call equals the 1-row call bit for bit, and no memory is allocated. A larger
/// m goes through gemm(), which needs gemm_workspace_bytes() of the workspace (a few ulp apart). Any k and n, none
/// included. Bits depend on the instruction set, not on the number of threads. Shapes that disagree are
/// Error::bad_argument, another dtype is Error::unsupported. x and y must not overlap.
void dense_linear(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<float> y, Workspace& workspace,
                  ThreadTeam& team);

/// The output channels [begin, end) of dense_linear() for at most kMaxPackedRows rows, on this thread: for what shares
/// a hand-over with it. Nothing is checked.
void dense_channels(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<float> y, std::int64_t begin,
                    std::int64_t end);

/// The plain reference: FP64 throughout, in the order of k.
void dense_linear_reference(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<double> y);

}  // namespace qpn8::cpu
