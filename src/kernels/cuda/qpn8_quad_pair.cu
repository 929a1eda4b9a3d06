#include "kernels/cuda/qpn8_quad_pair.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.hpp"
#include "kernels/cuda/check.hpp"
#include "kernels/cuda/qpn8_quad_pair.cuh"
#include "qpn8/error.hpp"

namespace qpn8::cuda {
namespace {

using Kernel = void (*)(QuadPairArgs);

/// The kernels of one number of chains: [prefetch][block scales].
template <int kChains>
constexpr std::array<std::array<Kernel, 2>, 2> kProducts = {
    {{quad_pair<kChains, false, false>, quad_pair<kChains, false, true>},
     {quad_pair<kChains, true, false>, quad_pair<kChains, true, true>}}};

template <int kChains>
constexpr std::array<std::array<Kernel, 2>, 2> kGateUps = {
    {{quad_pair_gate_up<kChains, false, false>, quad_pair_gate_up<kChains, false, true>},
     {quad_pair_gate_up<kChains, true, false>, quad_pair_gate_up<kChains, true, true>}}};

Kernel pick(const Schedule& schedule, ScaleKind kind, bool gate_up) {
  const auto& one = gate_up ? kGateUps<1> : kProducts<1>;
  const auto& two = gate_up ? kGateUps<2> : kProducts<2>;
  const auto& four = gate_up ? kGateUps<4> : kProducts<4>;
  const auto& table = schedule.accumulator_chains == 1 ? one : schedule.accumulator_chains == 2 ? two : four;
  return table[schedule.prefetch ? 1 : 0][kind == ScaleKind::block ? 1 : 0];
}

unsigned short* bits(__half* data) { return reinterpret_cast<unsigned short*>(data); }
const unsigned short* bits(const __half* data) { return reinterpret_cast<const unsigned short*>(data); }

QuadPairArgs arguments(const QuadPairWeight& weight, const Schedule& schedule, const QuadPairInput& x) {
  if (const std::string refusal = quad_pair_refusal(weight, schedule, x.rows); !refusal.empty()) {
    throw Error(Error::unsupported_shape, refusal);
  }
  check(x.stride % 8 == 0, "rows of x are 16-byte aligned");
  QuadPairArgs args = {};
  args.codes = weight.codes;
  args.scales = weight.scales;
  args.x = bits(x.data);
  args.x_stride = x.stride;
  args.product_x = weight.k;
  args.rows = x.rows;
  args.k = static_cast<int>(weight.k);
  args.tiles = static_cast<int>(weight.n / kQuadPairColumns);
  args.products = static_cast<int>(weight.products);
  args.split = schedule.split_k;
  args.block_n = static_cast<int>(weight.block_n);
  args.block_k = static_cast<int>(weight.block_k);
  return args;
}

void set_segments(QuadPairArgs& args, std::span<const OutputSegment> y) {
  check(y.size() <= kMaxSegments, "at most four output segments");
  std::int64_t first = 0;
  for (const OutputSegment& segment : y) {
    args.segment[args.segments++] = {bits(segment.data), static_cast<int>(first), static_cast<int>(first + segment.n),
                                     segment.stride};
    first += segment.n;
  }
}

void launch(Kernel kernel, const QuadPairArgs& args, int blocks, int tiles_a_block, cudaStream_t stream) {
  const auto threads = static_cast<unsigned>(args.split * kQuadPairLanes);
  const auto shared = static_cast<std::size_t>(args.split * tiles_a_block * kTileSums) * sizeof(float);
  check_cuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)),
             "cudaFuncSetAttribute");
  kernel<<<static_cast<unsigned>(blocks), threads, shared, stream>>>(args);
  check_launch("quad_pair");
}

}  // namespace

std::string quad_pair_refusal(const QuadPairWeight& weight, const Schedule& schedule, int rows) {
  if (std::string refusal = shape_refusal(weight.k, weight.n); !refusal.empty()) return refusal;
  if (std::string refusal = schedule_refusal(schedule, weight.k); !refusal.empty()) return refusal;
  if (schedule.split_k > kMaxSplit) {
    return "schedule " + to_string(schedule) + ": split_k is at most " + std::to_string(kMaxSplit) +
           ", the warps of a block";
  }
  if (rows < 1 || rows > kQuadPairRows) {
    return std::to_string(rows) + " rows; 1 to " + std::to_string(kQuadPairRows) + " are served";
  }
  if (weight.products > 1 && weight.scale_kind == ScaleKind::block && weight.n % weight.block_n != 0) {
    return "N=" + std::to_string(weight.n) + ": products share no scale block, so N must be a multiple of " +
           std::to_string(weight.block_n);
  }
  return {};
}

void qpn8_quad_pair(const QuadPairWeight& weight, const Schedule& schedule, const QuadPairInput& x,
                    const DenseRider& rider, std::span<const OutputSegment> y, cudaStream_t stream) {
  QuadPairArgs args = arguments(weight, schedule, x);
  set_segments(args, y);
  args.rider = bits(rider.weight);
  args.rider_channels = static_cast<int>(rider.n);
  const int rider_blocks = (args.rider_channels + args.split - 1) / args.split;
  launch(pick(schedule, weight.scale_kind, false), args, args.tiles * args.products + rider_blocks, 1, stream);
}

void qpn8_quad_pair_gate_up(const QuadPairWeight& weight, const Schedule& schedule, const QuadPairInput& x,
                            const OutputSegment& y, cudaStream_t stream) {
  check(weight.products == 1 && weight.n % (2 * kQuadPairColumns) == 0, "gate and up are whole tiles of one product");
  QuadPairArgs args = arguments(weight, schedule, x);
  set_segments(args, std::span(&y, 1));
  launch(pick(schedule, weight.scale_kind, true), args, args.tiles / 2, 2, stream);
}

}  // namespace qpn8::cuda
