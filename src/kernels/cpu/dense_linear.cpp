#include "kernels/cpu/dense_linear.hpp"

#include "kernels/cpu/gemm.hpp"

namespace qpn8::cpu {

void dense_linear(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<float> y, Workspace& workspace,
                  ThreadTeam& team) {
  gemm(weight, x, y, workspace, team);
}

}  // namespace qpn8::cpu
