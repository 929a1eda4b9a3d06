#include "qpn8/linear.hpp"

#include <fmt/format.h>

#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/qpn8_linear.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {

void multiply(const PackedWeight& weight, const Schedule& schedule, MatrixView<const float> x, MatrixView<float> y,
              Workspace& workspace, ThreadTeam& team) {
  if (x.cols != weight.k || y.cols != weight.n || x.rows != y.rows) {
    throw Error(
        Error::bad_argument,
        fmt::format("multiply: x [{}, {}] and y [{}, {}] for a weight of K={} N={}; x [m, K] and y [m, N] are needed",
                    x.rows, x.cols, y.rows, y.cols, weight.k, weight.n));
  }
  if (const std::string refusal = schedule_refusal(schedule, weight.k); !refusal.empty()) {
    throw Error(Error::unsupported_shape, refusal);
  }
  if (x.rows == 0) return;
  if (x.rows <= kMaxPackedRows) {
    cpu::qpn8_linear(weight, schedule, x, y, workspace, team);
  } else {
    cpu::gemm(weight, x, y, workspace, team);
  }
}

}  // namespace qpn8
