#include "evidence/fused_gate_up.hpp"

#include <cmath>

#include "kernels/cpu/swiglu.hpp"
#include "qpn8/half.hpp"

namespace qpn8 {

Matrix<float> fused_gate_up(const Matrix<float>& gate_up, ThreadTeam& team) {
  Matrix<float> out(gate_up.rows(), gate_up.cols() / 2);
  cpu::swiglu(gate_up.view(), out.view(), team);
  return out;
}

Matrix<float> unfused_gate_up(Matrix<float> gate_up, ThreadTeam& team) {
  for (float& value : gate_up.values()) value = to_float(to_half(value));
  return fused_gate_up(gate_up, team);
}

Matrix<double> exact_gate_up(const Matrix<double>& gate_up) {
  Matrix<double> out(gate_up.rows(), gate_up.cols() / 2);
  for (std::int64_t t = 0; t < out.rows(); ++t) {
    for (std::int64_t i = 0; i < out.cols(); ++i) {
      const double gate = gate_up(t, i);
      out(t, i) = gate / (1 + std::exp(-gate)) * gate_up(t, out.cols() + i);
    }
  }
  return out;
}

}  // namespace qpn8
