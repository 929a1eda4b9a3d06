#pragma once

#include <string>

#include "evidence/audit_weight.hpp"
#include "qpn8/matrix.hpp"

namespace qpn8 {

/// What is wrong with a product, by the channels that are further from the exact one than rounding explains: not
/// written, swapped with each other, scaled by a factor, or off. Empty if nothing is.
///
/// y [rows, n]; `rounds_to_fp16`: the device stores outputs as FP16.
std::string describe_fault(const Matrix<float>& y, const ExactProduct& exact, bool rounds_to_fp16);

}  // namespace qpn8
