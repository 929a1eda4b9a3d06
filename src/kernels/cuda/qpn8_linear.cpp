#include "kernels/cuda/qpn8_linear.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "base/check.hpp"
#include "kernels/cuda/check.hpp"
#include "kernels/cuda/qpn8_kernels.hpp"
#include "qpn8/error.hpp"
#include "qpn8/schedule.hpp"

namespace qpn8::cuda {
namespace {

constexpr int kBulkCopyCapability = 90;

ScaleMode scale_mode(const PackedLayout& weight, const LinearShape& shape, const ScheduleShape& schedule) {
  constexpr int kBlockSteps = kScaleBlock / kStepInputs;
  if (weight.scale_kind == ScaleKind::channel) return ScaleMode::channel;
  const bool whole = schedule.chunk_steps % kBlockSteps == 0;
  const bool part = kBlockSteps % schedule.chunk_steps == 0 && warp_steps(shape, schedule) == schedule.chunk_steps;
  const bool aligned = is_even(shape, schedule) && (whole || part);
  return weight.block_k == kScaleBlock && aligned ? ScaleMode::aligned_block : ScaleMode::block;
}

LinearKernel kernel_for(const PackedLayout& weight, const LinearShape& shape, const ScheduleShape& schedule, int rows,
                        const DeviceLimits& device) {
  KernelForm form;
  form.rows = compiled_rows(rows);
  form.unit_tiles = schedule.unit_tiles;
  form.scales = scale_mode(weight, shape, schedule);
  form.warps = schedule.warps;
  form.chunk = schedule.chunk_steps;
  LinearKernel kernel = nullptr;
  if (runs_resident(shape, schedule, rows, device)) kernel = find_resident_kernel(form);
  if (kernel == nullptr && runs_streamed(shape, schedule, rows, device)) kernel = find_streamed_kernel(form);
  if (kernel == nullptr && schedule.warps == kLinearWarps) kernel = find_general_kernel(form);
  return kernel;
}

int attribute(cudaDeviceAttr name) {
  int device = 0;
  int value = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&value, name, device), "cudaDeviceGetAttribute");
  return value;
}

LinearShape shape_of(const PackedLayout& weight, std::int64_t groups) {
  check(groups >= 1 && weight.n % groups == 0, "every group has as many channels");
  return {.k = weight.k, .n = weight.n / groups, .groups = groups};
}

LinearArgs arguments(const PackedLayout& weight, std::int64_t groups, const ScheduleShape& schedule,
                     const ProductInput& x, const float* bias, const ProductOutput& y) {
  const LinearShape shape = shape_of(weight, groups);
  LinearArgs args = {};
  args.codes = weight.codes;
  args.scales = weight.scales;
  args.bias = bias;
  args.x = x.data;
  args.y = y.data;
  args.schedule = schedule;
  args.shared = shared_layout(shape, schedule, x.rows);
  args.part_steps = deal(static_cast<int>(weight.steps()), schedule.split * schedule.warps);
  args.group_clusters = static_cast<int>(group_clusters(shape, schedule));
  args.rows = x.rows;
  args.k = static_cast<int>(weight.k);
  args.steps = static_cast<int>(weight.steps());
  args.tiles = static_cast<int>(shape.n / kTileChannels);
  args.groups = static_cast<int>(groups);
  args.columns = static_cast<int>(y.end == ProductEnd::gate ? 2 * y.n : y.n);
  args.x_stride = x.stride;
  args.group_x = weight.k;
  args.y_stride = y.stride;
  args.y_is_float = y.dtype == DType::f32;
  args.end = y.end;
  args.paired_half = static_cast<int>(weight.paired_half);
  args.norm = x.norm;
  args.eps = x.eps;
  args.block_shift = std::countr_zero(static_cast<unsigned>(weight.block_k / kStepInputs));
  args.block_tile_shift = std::countr_zero(static_cast<unsigned>(weight.block_n / kTileChannels));
  return args;
}

/// From sm_90 on: the next kernel of the stream may start early, and blocks form clusters.
void launch(LinearKernel kernel, LinearArgs args, bool bulk_copies, cudaStream_t stream) {
  allow_shared_memory(reinterpret_cast<const void*>(kernel), static_cast<std::size_t>(args.shared.total),
                      "qpn8_linear");
  const auto cluster = static_cast<unsigned>(args.schedule.split);
  std::array<cudaLaunchAttribute, 2> attributes = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = cluster;
  attributes[1].val.clusterDim.y = 1;
  attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(cluster * static_cast<unsigned>(args.schedule.clusters));
  config.blockDim = dim3(static_cast<unsigned>(args.schedule.warps * kWarpLanes));
  config.dynamicSmemBytes = static_cast<std::size_t>(args.shared.total);
  config.stream = stream;
  config.attrs = attributes.data();
  config.numAttrs = !bulk_copies ? 0 : cluster > 1 ? 2 : 1;
  void* parameters[] = {&args};
  check_cuda(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), parameters), "qpn8_linear");
}

/// The rows [first, first + rows) of a product's x and y.
ProductInput rows_of(const ProductInput& x, int first, int rows) {
  ProductInput part = x;
  part.data += first * x.stride;
  part.rows = rows;
  return part;
}

ProductOutput rows_of(const ProductOutput& y, int first) {
  ProductOutput part = y;
  const std::size_t bytes = y.dtype == DType::f32 ? sizeof(float) : sizeof(__half);
  part.data = static_cast<char*>(y.data) + static_cast<std::size_t>(first * y.stride) * bytes;
  return part;
}

void multiply(const PackedLayout& weight, std::int64_t groups, const ProductInput& x, const float* bias,
              const ProductOutput& y, cudaStream_t stream) {
  const LinearShape shape = shape_of(weight, groups);
  const DeviceLimits device = linear_limits();
  const int most = rows_that_fit(shape, device);
  if (most == 0) {
    throw Error(Error::unsupported_shape,
                fmt::format("K={} N={}: one row of x does not fit the shared memory of a cluster", shape.k, shape.n));
  }
  for (int first = 0; first < x.rows; first += most) {
    const int rows = std::min(most, x.rows - first);
    const std::optional<LinearSchedule> schedule = choose_schedule(shape, rows, device);
    check(schedule.has_value(), "fewer rows fit where more do");
    qpn8_linear_scheduled(weight, groups, schedule->shape, rows_of(x, first, rows), bias, rows_of(y, first), stream);
  }
}

/// Whether a block sees all of k.
bool sees_all_of_k(const LinearShape& shape, const DeviceLimits& device) {
  const std::optional<LinearSchedule> schedule = choose_schedule(shape, 1, device);
  return schedule && schedule->shape.split == 1;
}

/// What a schedule must be like for a product that does more than to multiply and store.
void check_ends(const PackedLayout& weight, int split, bool resident, const ProductInput& x, const ProductOutput& y) {
  const bool normalises = x.norm != nullptr;
  const bool gates = y.end == ProductEnd::gate;
  if (!normalises && y.end == ProductEnd::store && weight.paired_half == 0) return;
  check(!resident && x.rows <= kMaxPackedRows, "a kernel that only multiplies and stores");
  check(!normalises || (weight.k % kStepInputs == 0 && split == 1),
        "rows are normalised where a block sees all of them");
  check(y.end == ProductEnd::store || y.dtype == DType::f16, "sums and gated products are FP16");
  check(!gates || (weight.paired_half * 2 == weight.n && y.n == weight.paired_half && split == 1),
        "a gated product has its channels in pairs");
}

}  // namespace

DeviceLimits linear_limits() {
  // What matters is the architecture that the code was compiled for; the device may be a later one.
  cudaFuncAttributes code = {};
  check_cuda(cudaFuncGetAttributes(&code, reinterpret_cast<const void*>(find_general_kernel({}))),
             "cudaFuncGetAttributes");
  DeviceLimits limits;
  limits.compute_capability = code.ptxVersion;
  limits.multiprocessors = attribute(cudaDevAttrMultiProcessorCount);
  limits.block_shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  limits.multiprocessor_shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  return limits;
}

void qpn8_linear_scheduled(const PackedLayout& weight, std::int64_t groups, const ScheduleShape& schedule,
                           const ProductInput& x, const float* bias, const ProductOutput& y, cudaStream_t stream) {
  check(y.n <= weight.n && x.stride % 8 == 0, "y is no wider than the weight, and rows of x are 16-byte aligned");
  const DeviceLimits device = linear_limits();
  const std::string refusal = schedule_refusal(shape_of(weight, groups), schedule, x.rows, device);
  if (!refusal.empty()) throw Error(Error::unsupported_shape, refusal);
  const bool resident = runs_resident(shape_of(weight, groups), schedule, x.rows, device);
  check_ends(weight, schedule.split, resident, x, y);
  const LinearKernel kernel = kernel_for(weight, shape_of(weight, groups), schedule, x.rows, device);
  check(kernel != nullptr, "a legal schedule has a kernel");
  launch(kernel, arguments(weight, groups, schedule, x, bias, y), device.compute_capability >= kBulkCopyCapability,
         stream);
}

bool can_add(const LinearShape& shape, const DeviceLimits& device) {
  for (const int rows : {1, 8}) {
    const std::optional<LinearSchedule> schedule = choose_schedule(shape, rows, device);
    if (!schedule || runs_resident(shape, schedule->shape, rows, device)) return false;
  }
  return true;
}

bool can_normalise(const LinearShape& shape, const DeviceLimits& device) {
  return shape.k % kStepInputs == 0 && sees_all_of_k(shape, device) && can_add(shape, device);
}

bool can_gate(const LinearShape& shape, const DeviceLimits& device) {
  return shape.n % (2 * kTileChannels) == 0 && sees_all_of_k(shape, device) && can_add(shape, device);
}

void qpn8_linear(const PackedLayout& weight, const ProductInput& x, const float* bias, const ProductOutput& y,
                 cudaStream_t stream) {
  check(x.rows >= 1 && x.rows <= kMaxLinearRows, "a packed product has 1 to 16 rows");
  multiply(weight, 1, x, bias, y, stream);
}

void qpn8_linear_grouped(const PackedLayout& weight, std::int64_t groups, const ProductInput& x, const ProductOutput& y,
                         cudaStream_t stream) {
  check(x.rows >= 1 && x.rows <= kMaxLinearRows, "a packed product has 1 to 16 rows");
  multiply(weight, groups, x, nullptr, y, stream);
}

}  // namespace qpn8::cuda
