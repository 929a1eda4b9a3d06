#include "backend/cuda/load_linear.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/load_linear.hpp"
#include "base/buffer.hpp"
#include "base/check.hpp"
#include "qpn8/error.hpp"
#include "qpn8/half.hpp"

namespace qpn8::cuda {
namespace {

constexpr float kHalfMax = 65504.0F;

float value_at(DType dtype, const void* values, std::int64_t i) {
  if (dtype == DType::bf16) return to_float(static_cast<const BFloat16*>(values)[i]);
  check(dtype == DType::f32, "dense weights are F32, F16 or BF16");
  return static_cast<const float*>(values)[i];
}

/// Finite host weights [rows, cols] without gaps, on the GPU as FP16.
DeviceBuffer upload_as_half(const cpu::DenseWeightView& weight, const std::string& name, ThreadTeam& team) {
  const std::int64_t count = weight.n * weight.k;
  DeviceBuffer memory(static_cast<std::size_t>(count) * sizeof(Half), name);
  if (weight.dtype == DType::f16) {
    memory.fill({static_cast<const std::byte*>(weight.data), memory.size()});
    return memory;
  }
  std::vector<Half> halves(static_cast<std::size_t>(count));
  team.for_ranges(weight.n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * weight.k; i < end * weight.k; ++i) {
      const float value = value_at(weight.dtype, weight.data, i);
      if (std::fabs(value) > kHalfMax) {
        throw Error(Error::bad_value, fmt::format("{}: row {} column {} is {}, beyond FP16's 65504; a GPU keeps dense "
                                                  "weights in FP16, --device cpu as they are",
                                                  name, i / weight.k, i % weight.k, value));
      }
      halves[static_cast<std::size_t>(i)] = to_half(value);
    }
  });
  memory.fill(std::as_bytes(std::span(halves)));
  return memory;
}

/// Channels of gate and of up are paired where products can make use of it.
std::int64_t paired_half_of(const LinearSource& source, const PackedWeight& weight) {
  const bool fits = source.gated && source.bias.empty() && weight.scale_kind == ScaleKind::channel &&
                    source.plan->tensor.n == weight.n;
  return fits && can_gate({.k = weight.k, .n = weight.n}, linear_limits()) ? weight.n / 2 : 0;
}

std::vector<float> in_stored_order(const PackedWeight& weight, std::int64_t paired_half) {
  std::vector<float> scales = weight.scales;
  if (paired_half == 0) return scales;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    scales[i] = weight.scales[static_cast<std::size_t>(channel_stored_at(static_cast<std::int64_t>(i), paired_half))];
  }
  return scales;
}

}  // namespace

std::unique_ptr<CudaLinear> load_dense(const LinearSource& source, ThreadTeam& team) {
  const std::unique_ptr<cpu::DenseLinear> host = cpu::load_dense(source, team);
  const cpu::DenseWeightView& weight = host->weight();
  DeviceBuffer memory = upload_as_half(weight, source.plan->name, team);
  const DenseWeight view = {memory.as<__half>(), weight.n, weight.k};
  return std::make_unique<DenseLinear>(view, std::move(memory), source.bias);
}

std::unique_ptr<CudaLinear> load_packed(const LinearSource& source, ThreadTeam& team) {
  const std::unique_ptr<cpu::PackedLinear> host = cpu::load_packed(source, team);
  const PackedWeight& weight = host->weight();
  const std::string& name = source.plan->name;
  if (weight.scale_kind == ScaleKind::block &&
      (weight.block_n % kFragmentChannels != 0 || weight.block_k % kFragmentStep != 0)) {
    throw Error(Error::unsupported_shape,
                fmt::format("{}: its scales' blocks are {} x {}; a GPU needs multiples of {} x {} (or --qpn8 off)",
                            name, weight.block_n, weight.block_k, kFragmentChannels, kFragmentStep));
  }
  Buffer laid_out(packed_code_bytes(weight.n, weight.k));
  const std::int64_t paired_half = paired_half_of(source, weight);
  lay_out_codes(weight, paired_half, {reinterpret_cast<std::uint8_t*>(laid_out.data()), laid_out.size()}, team);
  DeviceBuffer codes(laid_out.size(), name);
  codes.fill(laid_out.bytes());
  const std::vector<float> stored_scales = in_stored_order(weight, paired_half);
  const std::span<const std::byte> host_scales = std::as_bytes(std::span(stored_scales));
  DeviceBuffer scales(host_scales.size(), name);
  scales.fill(host_scales);
  const PackedLayout layout = {.n = weight.n,
                               .k = weight.k,
                               .scale_kind = weight.scale_kind,
                               .block_n = weight.block_n,
                               .block_k = weight.block_k,
                               .codes = codes.as<std::uint8_t>(),
                               .scales = scales.as<float>(),
                               .paired_half = paired_half};
  return std::make_unique<PackedLinear>(layout, std::move(codes), std::move(scales), source.plan->tensor.n,
                                        source.bias);
}

OwnedTensor load_table(const Checkpoint& checkpoint, const CheckpointTensor& tensor, ThreadTeam& team) {
  const OwnedTensor host = cpu::load_table(checkpoint, tensor, team);
  const Tensor& table = host.tensor;
  DeviceBuffer memory =
      upload_as_half({.dtype = table.dtype, .data = table.data, .n = table.rows, .k = table.cols}, tensor.name, team);
  std::byte* data = memory.data();
  return {{DType::f16, table.rows, table.cols, table.cols, data}, std::make_unique<BufferMemory>(std::move(memory))};
}

}  // namespace qpn8::cuda
