#pragma once

#include <cstring>
#include <vector>

#include "kernels/cpu/dense_linear.hpp"
#include "kernels/kernel_cases.hpp"

namespace qpn8::test {

/// A random weight in its stored type, without a byte to spare behind it: a sanitizer sees every step too far.
class DenseWeight {
 public:
  DenseWeight(DType dtype, std::int64_t n, std::int64_t k, std::mt19937& random) : dtype_(dtype), n_(n), k_(k) {
    const Matrix<float> values = gaussian(n, k, random);
    bytes_.resize(static_cast<std::size_t>(n * k) * size_of(dtype));
    for (std::size_t i = 0; i < values.values().size(); ++i) store(i, values.values()[i]);
  }

  cpu::DenseWeightView view() const { return {dtype_, bytes_.data(), n_, k_}; }

 private:
  void store(std::size_t index, float value) {
    std::byte* to = bytes_.data() + index * size_of(dtype_);
    const Half half = to_half(value);
    const BFloat16 brain = to_bfloat16(value);
    switch (dtype_) {
      case DType::f16:
        std::memcpy(to, &half, sizeof half);
        break;
      case DType::bf16:
        std::memcpy(to, &brain, sizeof brain);
        break;
      default:
        std::memcpy(to, &value, sizeof value);
    }
  }

  DType dtype_;
  std::int64_t n_;
  std::int64_t k_;
  std::vector<std::byte> bytes_;
};

}  // namespace qpn8::test
