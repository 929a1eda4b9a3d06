#include "kernels/cpu/gemm.hpp"

#include "qpn8/e4m3.hpp"

namespace qpn8::cpu {

std::size_t gemm_workspace_bytes(std::int64_t, int) { return 0; }

void gemm(const DenseWeightView& weight, MatrixView<const float> x, MatrixView<float> y, Workspace&, ThreadTeam& team) {
  team.for_ranges(weight.n, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < x.rows; ++i) {
      for (std::int64_t n = begin; n < end; ++n) {
        float sum = 0;
        for (std::int64_t k = 0; k < weight.k; ++k) sum += x.data[i * x.stride + k] * weight_at(weight, n, k);
        y.data[i * y.stride + n] = sum;
      }
    }
  });
}

void gemm(const PackedWeight& weight, MatrixView<const float> x, MatrixView<float> y, Workspace&, ThreadTeam& team) {
  team.for_ranges(weight.n, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < x.rows; ++i) {
      for (std::int64_t n = begin; n < end; ++n) {
        float sum = 0;
        for (std::int64_t k = 0; k < weight.k; ++k) {
          sum += x.data[i * x.stride + k] * decode_e4m3(code_at(weight, n, k)) * scale_at(weight, n, k);
        }
        y.data[i * y.stride + n] = sum;
      }
    }
  });
}

}  // namespace qpn8::cpu
