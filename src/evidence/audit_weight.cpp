#include "evidence/audit_weight.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

#include "qpn8/e4m3.hpp"
#include "qpn8/half.hpp"
#include "qpn8/quantize.hpp"
#include "quant/e2m1.hpp"

namespace qpn8 {
namespace {

/// A row of a part in its stored type.
template <class T>
std::span<const T> stored_row(const WeightPart& part, std::int64_t row) {
  const std::int64_t first = (part.first_row + row) * part.weight->cols() + part.first_col;
  return {reinterpret_cast<const T*>(part.weight->bytes.data()) + first, static_cast<std::size_t>(part.cols)};
}

/// Calls visit(row) with every row of a part that stores numbers.
template <class Visit>
void for_each_row(const WeightPart& part, const Visit& visit) {
  for (std::int64_t row = 0; row < part.rows; ++row) {
    switch (part.weight->dtype) {
      case DType::f16:
        visit(stored_row<Half>(part, row));
        break;
      case DType::bf16:
        visit(stored_row<BFloat16>(part, row));
        break;
      default:
        visit(stored_row<float>(part, row));
    }
  }
}

float as_float(float value) { return value; }
float as_float(Half value) { return to_float(value); }
float as_float(BFloat16 value) { return to_float(value); }

std::int64_t blocks_of(std::int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; }

}  // namespace

ServedWeight::ServedWeight(const LinearSource& source) : n_(source.plan->tensor.n), k_(source.plan->tensor.k) {
  for (const WeightPart& part : source.parts) {
    if (part.weight->dtype == DType::f8_e4m3) {
      append_codes(part, *source.checkpoint);
    } else if (part.weight->dtype == DType::u8 || part.weight->dtype == DType::i8) {
      append_fp4(part, *source.checkpoint);
    } else if (source.plan->route == Route::qpn8) {
      append_quantised(part);
    } else {
      append_numbers(part);
    }
  }
  append_zeros(source.zero_rows);
}

void ServedWeight::append_zeros(std::int64_t rows) {
  const auto values = static_cast<std::size_t>(rows * k_);
  if (!numbers_.empty()) {
    numbers_.resize(numbers_.size() + values);
    return;
  }
  codes_.resize(codes_.size() + values);
  scales_.resize(scales_.size() + static_cast<std::size_t>(rows), {1.0F});
  first_col_.resize(scales_.size());
}

void ServedWeight::append_codes(const WeightPart& part, const Checkpoint& checkpoint) {
  const std::vector<float> all = checkpoint.floats(*part.block_scales);
  const std::int64_t blocks = blocks_of(part.weight->cols());
  const std::int64_t first_block = part.first_col / kScaleBlock;
  for (std::int64_t row = 0; row < part.rows; ++row) {
    const auto codes = stored_row<std::uint8_t>(part, row);
    codes_.insert(codes_.end(), codes.begin(), codes.end());
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>((part.first_row + row) / kScaleBlock * blocks);
    scales_.emplace_back(begin + static_cast<std::ptrdiff_t>(first_block), begin + static_cast<std::ptrdiff_t>(blocks));
    first_col_.push_back(part.first_col % kScaleBlock);
  }
}

void ServedWeight::append_quantised(const WeightPart& part) {
  for_each_row(part, [&](auto row) {
    codes_.resize(codes_.size() + row.size());
    const float scale = quantize_channel(row, std::span(codes_).last(row.size()));
    scales_.push_back({scale});
    first_col_.push_back(0);
  });
}

void ServedWeight::append_fp4(const WeightPart& part, const Checkpoint& checkpoint) {
  const std::vector<float> scales = checkpoint.floats(*part.block_scales);
  const std::int64_t groups = part.block_scales->cols();
  const auto* codes = reinterpret_cast<const std::uint8_t*>(part.weight->bytes.data());
  for (std::int64_t row = part.first_row; row < part.first_row + part.rows; ++row) {
    for (std::int64_t col = part.first_col; col < part.first_col + part.cols; ++col) {
      const float scale = scales[static_cast<std::size_t>(row * groups + col / kFp4Group)];
      numbers_.push_back(decode_e2m1(e2m1_at(codes + row * part.weight->cols(), col)) * scale);
    }
  }
}

void ServedWeight::append_numbers(const WeightPart& part) {
  for_each_row(part, [&](auto row) {
    for (const auto value : row) numbers_.push_back(as_float(value));
  });
}

void ServedWeight::row(std::int64_t channel, std::span<double> weights) const {
  const auto index = static_cast<std::size_t>(channel);
  const std::size_t first = index * weights.size();
  if (!numbers_.empty()) {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = numbers_[first + i];
    return;
  }
  const std::vector<float>& scales = scales_[index];
  const auto offset = static_cast<std::size_t>(first_col_[index]);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float scale = scales.size() == 1 ? scales.front() : scales[(offset + i) / kScaleBlock];
    weights[i] = static_cast<double>(decode_e4m3(codes_[first + i])) * scale;
  }
}

ExactProduct exact_product(const ServedWeight& weight, const Matrix<float>& x, ThreadTeam& team) {
  ExactProduct product{{x.rows(), weight.n()}, {x.rows(), weight.n()}};
  team.for_ranges(weight.n(), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> weights(static_cast<std::size_t>(weight.k()));
    for (std::int64_t channel = begin; channel < end; ++channel) {
      weight.row(channel, weights);
      for (std::int64_t t = 0; t < x.rows(); ++t) {
        const std::span<const float> inputs = x.view().row(t);
        double sum = 0;
        double magnitude = 0;
        for (std::size_t i = 0; i < weights.size(); ++i) {
          const double term = inputs[i] * weights[i];
          sum += term;
          magnitude += std::abs(term);
        }
        product.values(t, channel) = sum;
        product.magnitudes(t, channel) = magnitude;
      }
    }
  });
  return product;
}

namespace {

OwnedTensor dequantise(const ServedWeight& weight, Backend& backend) {
  OwnedTensor tensor = backend.allocate(DType::f32, weight.n(), weight.k());
  std::vector<double> exact(static_cast<std::size_t>(weight.k()));
  std::vector<float> rounded(exact.size());
  for (std::int64_t channel = 0; channel < weight.n(); ++channel) {
    weight.row(channel, exact);
    for (std::size_t i = 0; i < exact.size(); ++i) rounded[i] = static_cast<float>(exact[i]);
    backend.write(tensor.tensor.row_range(channel, 1), std::as_bytes(std::span(rounded)));
  }
  return tensor;
}

}  // namespace

Fallback load_fallback(const ServedWeight& weight, const LinearSource& source, Backend& backend) {
  if (backend.activation_type() != DType::f32) return {{}, backend.load_linear(source)};
  OwnedTensor dequantised = dequantise(weight, backend);
  std::unique_ptr<Linear> shared = backend.share_linear(dequantised.tensor);
  return {std::move(dequantised), std::move(shared)};
}

}  // namespace qpn8
