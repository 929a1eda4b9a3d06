#include "measure/random_weights.hpp"

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/random.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "qpn8/half.hpp"

namespace qpn8 {
namespace {

constexpr std::int64_t kRows = 256;  // a multiple of the blocks that have scales of their own

DType stored_as(WeightType type) {
  switch (type) {
    case WeightType::f32:
      return DType::f32;
    case WeightType::f16:
      return DType::f16;
    case WeightType::bf16:
      return DType::bf16;
    case WeightType::f8_e4m3:
      return DType::f8_e4m3;
    case WeightType::f4_e2m1:
      break;
  }
  check(false, "shapes are of types that a packed or dense product reads");
  return DType::f32;
}

template <class Stored, class Convert>
std::vector<std::byte> converted(std::span<const float> values, Convert convert) {
  std::vector<std::byte> bytes(values.size() * sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Stored stored = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
  return bytes;
}

std::vector<std::byte> encoded(std::span<const float> values, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return converted<float>(values, [](float value) { return value; });
    case DType::f16:
      return converted<Half>(values, to_half);
    case DType::bf16:
      return converted<BFloat16>(values, to_bfloat16);
    default:
      // Codes use their whole range where the largest values are near 448.
      return converted<std::uint8_t>(values, [](float value) { return encode_e4m3(value * 128.0F); });
  }
}

}  // namespace

RandomWeights::RandomWeights(std::int64_t k, WeightType type) : folder_(std::make_unique<ScratchFolder>()) {
  const DType dtype = stored_as(type);
  const std::vector<std::byte> weight = encoded(random_values(kRows * k), dtype);
  std::vector<TensorToWrite> tensors = {{.name = "weight", .dtype = dtype, .shape = {kRows, k}, .bytes = weight}};
  const std::int64_t blocks = (k + kScaleBlock - 1) / kScaleBlock;
  const std::vector<float> scales(static_cast<std::size_t>(kRows / kScaleBlock * blocks), 1.0F / 128);
  if (type == WeightType::f8_e4m3) {
    tensors.push_back({.name = "weight_scale_inv",
                       .dtype = DType::f32,
                       .shape = {kRows / kScaleBlock, blocks},
                       .bytes = std::as_bytes(std::span(scales))});
  }
  write_safetensors(folder_->path() / "model.safetensors", tensors);
  checkpoint_ = std::make_unique<Checkpoint>(folder_->path());
}

LinearSource RandomWeights::source(const PlannedProjection& plan) const {
  LinearSource source;
  source.plan = &plan;
  source.checkpoint = checkpoint_.get();
  const CheckpointTensor& weight = checkpoint_->tensor("weight");
  check(weight.cols() == plan.tensor.k, "rows of as many weights as the projection has inputs");
  const bool block_scaled = weight.dtype == DType::f8_e4m3;
  for (std::int64_t left = plan.tensor.n; left > 0; left -= kRows) {
    source.parts.push_back({.weight = &weight,
                            .block_scales = block_scaled ? &checkpoint_->tensor("weight_scale_inv") : nullptr,
                            .rows = std::min(left, kRows),
                            .cols = weight.cols()});
  }
  return source;
}

void write_values(Backend& backend, const Tensor& target, std::span<const float> values) {
  check(target.dtype == DType::f32 || target.dtype == DType::f16, "activations are F32 or F16");
  backend.write(target, encoded(values, target.dtype));
}

std::vector<float> random_values(std::int64_t count) {
  // The sum of four 16-bit integers, whose variance is (2^32 - 1) / 3.
  const auto scale = static_cast<float>(1.0 / std::sqrt((0x1p32 - 1) / 3.0));
  Random random(static_cast<std::uint64_t>(count));
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    const std::uint64_t bits = random.next();
    const auto sum =
        static_cast<std::int64_t>((bits & 0xffffU) + (bits >> 16 & 0xffffU) + (bits >> 32 & 0xffffU) + (bits >> 48));
    value = static_cast<float>(sum - std::int64_t{2} * 0xffff) * scale;
  }
  return values;
}

}  // namespace qpn8
