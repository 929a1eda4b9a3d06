#include "backend/cuda_backend.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "backend/cpu/memory.hpp"
#include "backend/cpu/weight_part.hpp"
#include "backend/cuda/experts.hpp"
#include "backend/cuda/kv_cache.hpp"
#include "backend/cuda/load_linear.hpp"
#include "backend/cuda/memory.hpp"
#include "backend/cuda/operands.hpp"
#include "backend/cuda/own_stream.hpp"
#include "backend/cuda/step_graphs.hpp"
#include "base/check.hpp"
#include "kernels/cuda/argmax.hpp"
#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/check.hpp"
#include "kernels/cuda/gemm.hpp"
#include "kernels/cuda/heads.hpp"
#include "kernels/cuda/rms_norm.hpp"
#include "kernels/cuda/route_experts.hpp"
#include "kernels/cuda/rows.hpp"
#include "qpn8/error.hpp"
#include "qpn8/half.hpp"
#include "qpn8/schedule.hpp"

namespace qpn8 {
namespace {

using cuda::column;
using cuda::floats;
using cuda::halves;
using cuda::head_works;
using cuda::integers;
using cuda::normalised;
using cuda::places_of;
using cuda::rule_of;
using cuda::single_row;
using cuda::splits_of;

Hardware require_device() {
  const CudaDevice device = find_cuda_device();
  if (device.hardware) return *device.hardware;
  throw Error(Error::missing_capability, "device \"cuda\": " + device.absence);
}

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(const CudaBackendOptions& options)
      : hardware_(require_device()),
        team_(options.threads > 0 ? options.threads
                                  : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
        stream_(hardware_.compute_capability >= 90),
        gemm_(stream()),
        workspace_(options.workspace_bytes, "the workspace"),
        transfers_(stream()),
        graphs_(stream()) {
    // compute-sanitizer does not see the bulk stores by which cuBLAS writes its results here.
    workspace_.clear();
  }

  ~CudaBackend() override { cudaStreamSynchronize(stream().handle); }

  const Hardware& hardware() const override { return hardware_; }
  DType activation_type() const override { return DType::f16; }

  OwnedTensor allocate(DType dtype, std::int64_t rows, std::int64_t cols) override {
    const auto width = static_cast<std::int64_t>(size_of(dtype));
    const std::string what = fmt::format("a tensor [{}, {}] of {}", rows, cols, to_string(dtype));
    cuda::DeviceBuffer memory(static_cast<std::size_t>(cpu::size_product({rows, cols, width}, what)), what);
    if (memory.size() > 0) {
      cuda::check_cuda(cudaMemsetAsync(memory.data(), 0, memory.size(), stream().handle), "cudaMemsetAsync");
    }
    std::byte* data = memory.data();
    return {{dtype, rows, cols, cols, data}, std::make_unique<cuda::BufferMemory>(std::move(memory))};
  }

  void write(const Tensor& target, std::span<const std::byte> source) override {
    const std::size_t width = row_bytes(target, source.size());
    if (source.empty()) return;
    transfers_.write(target.data, static_cast<std::size_t>(target.stride) * size_of(target.dtype), source.data(), width,
                     static_cast<std::size_t>(target.rows));
  }

  void read(const Tensor& source, std::span<std::byte> target) override {
    const std::size_t width = row_bytes(source, target.size());
    if (target.empty()) return;
    transfers_.read(target.data(), source.data, static_cast<std::size_t>(source.stride) * size_of(source.dtype), width,
                    static_cast<std::size_t>(source.rows));
  }

  std::unique_ptr<KvCache> make_kv_cache(const KvShape& shape) override {
    return std::make_unique<cuda::CudaKvCache>(shape);
  }

  void require_room(const Plan& plan) override {
    double needed = 0;  // a product of sizes that a file makes up may not fit an integer
    for (const PlannedProjection& projection : plan.projections()) {
      const TensorDesc& tensor = projection.tensor;
      const bool packed = projection.route == Route::qpn8;
      const auto channels = static_cast<double>(packed ? std::max(projection.padded_n, tensor.n) : tensor.n);
      needed +=
          channels * static_cast<double>(tensor.k * tensor.groups) * (packed ? sizeof(std::uint8_t) : sizeof(Half));
    }
    std::size_t free = 0;
    std::size_t total = 0;
    cuda::check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    if (needed <= static_cast<double>(free)) return;
    throw Error(
        Error::missing_capability,
        fmt::format("the weights need {:.1f} GiB of GPU memory, {:.1f} of {:.1f} GiB are free; a smaller model "
                    "or --device cpu is needed",
                    needed / (1 << 30), static_cast<double>(free) / (1 << 30), static_cast<double>(total) / (1 << 30)));
  }

  std::unique_ptr<Linear> load_linear(const LinearSource& source) override {
    cpu::check_parts(source);
    cpu::check_bias(source);
    require_supported(source);
    if (source.plan->route != Route::qpn8) return cuda::load_dense(source, team_);
    const std::size_t needed = cuda::PackedLinear::least_workspace_bytes(source.plan->tensor.k);
    if (needed > workspace_.size()) {
      throw Error(Error::missing_capability,
                  fmt::format("{}: products of K={} need {} bytes of workspace, there are {}; a larger workspace_bytes "
                              "in the contract is needed, or --qpn8 off",
                              source.plan->name, source.plan->tensor.k, needed, workspace_.size()));
    }
    return cuda::load_packed(source, team_);
  }

  std::unique_ptr<Linear> share_linear(const Tensor& weight) override {
    check(weight.stride == weight.cols, "a shared weight has no gaps");
    const cuda::DenseWeight view = {halves(weight).data, weight.rows, weight.cols};
    return std::make_unique<cuda::DenseLinear>(view, cuda::DeviceBuffer(), std::vector<float>());
  }

  OwnedTensor load_table(const Checkpoint& checkpoint, const CheckpointTensor& tensor) override {
    return cuda::load_table(checkpoint, tensor, team_);
  }

  void embed(const Tensor& table, const Tensor& ids, const Tensor& out) override { gather_rows(table, ids, out); }

  void gather_rows(const Tensor& in, const Tensor& rows, const Tensor& out) override {
    check(rows.rows == out.rows && in.cols == out.cols, "a row is found for every index");
    cuda::gather_rows(halves(in), column(rows), halves(out), stream());
  }

  void linear(const Linear& weight, const Tensor& x, const Tensor& y) override {
    check(y.rows == x.rows && (y.dtype == DType::f16 || y.dtype == DType::f32), "a row of y for every row of x");
    static_cast<const cuda::CudaLinear&>(weight).apply(halves(x), {y.data, y.dtype, y.cols, y.stride}, products());
  }

  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& out) override {
    cuda::rms_norm(halves(x), single_row(weight), eps, halves(out), stream());
  }

  void add_rms_norm(const Tensor& residual, const Tensor& delta, const Tensor& weight, float eps,
                    const Tensor& out) override {
    cuda::add_rms_norm(halves(residual), halves(delta), single_row(weight), eps, halves(out), stream());
  }

  void head_rms_norm(const Tensor& x, const Tensor& weight, float eps) override {
    cuda::HeadWorks work = {.works = {}, .head_dim = weight.cols, .rotation = {}, .layer = {}, .places = {}};
    work.works[0] = {.x = halves(x), .norm = single_row(weight), .eps = eps};
    cuda::process_heads(work, x.rows, stream());
  }

  void rope_angles(const Tensor& positions, const Tensor& frequencies, float scale, const Tensor& angles) override {
    cuda::rope_angles(column(positions), floats(frequencies), scale, floats(angles), stream());
  }

  void rope(const Tensor& x, std::int64_t head_dim, const Tensor& angles, RopePairing pairing) override {
    cuda::HeadWorks work = {.works = {},
                            .head_dim = head_dim,
                            .rotation = {floats(angles), pairing == RopePairing::interleaved},
                            .layer = {},
                            .places = {}};
    work.works[0] = {.x = halves(x), .rotated = true};
    cuda::process_heads(work, x.rows, stream());
  }

  void append_kv(KvCache& cache, std::int64_t layer, const Tensor& k, const Tensor& v, const Batch& batch) override {
    const cuda::KvLayer kv = static_cast<cuda::CudaKvCache&>(cache).layer(layer);
    cuda::HeadWorks work = {
        .works = {}, .head_dim = kv.head_dim, .rotation = {}, .layer = kv, .places = places_of(batch)};
    work.works[0] = {.x = halves(k), .target = cuda::HeadTarget::keys};
    work.works[1] = {.x = halves(v), .target = cuda::HeadTarget::values};
    cuda::process_heads(work, batch.rows, stream());
  }

  void prepare_heads(KvCache& cache, std::int64_t layer, const HeadInputs& heads, const Batch& batch) override {
    cuda::process_heads(head_works(cache, layer, heads, batch), batch.rows, stream());
  }

  void attention(const KvCache& cache, std::int64_t layer, const Tensor& q, const Batch& batch,
                 const AttentionShape& shape, const Tensor& out) override {
    const cuda::KvLayer kv = static_cast<const cuda::CudaKvCache&>(cache).layer(layer);
    check(shape.kv_heads == kv.kv_heads && shape.head_dim == kv.head_dim, "attention fits the cache");
    const std::int64_t splits = splits_of(batch);
    const std::int64_t rows = attention_rows(batch, shape, splits);
    const cuda::RowPlaces places = places_of(batch);
    for (std::int64_t first = 0; first < batch.rows; first += rows) {
      const std::int64_t count = std::min(rows, batch.rows - first);
      cuda::attention(kv, halves(q.row_range(first, count)), {places.slots + first, places.positions + first},
                      rule_of(shape), {attention_.as<float>(), splits}, halves(out.row_range(first, count)), stream());
    }
  }

  void attend(KvCache& cache, std::int64_t layer, const HeadInputs& heads, const Batch& batch,
              const AttentionShape& shape, const Tensor& out) override {
    const bool one_row_each =
        std::all_of(batch.spans.begin(), batch.spans.end(), [](const BatchSpan& span) { return span.rows == 1; });
    // Rows of one sequence see each other's keys, which other blocks would have to wait for.
    if (!one_row_each || batch.rows > kMaxPackedRows) {
      Backend::attend(cache, layer, heads, batch, shape, out);
      return;
    }
    const std::int64_t splits = splits_of(batch);
    check(attention_rows(batch, shape, splits) >= batch.rows, "few rows are one launch");
    cuda::attention_with_heads(head_works(cache, layer, heads, batch), batch.rows, rule_of(shape),
                               {attention_.as<float>(), splits}, in_step_, halves(out), stream());
  }

  void linear_normalised(ResidualStream& residual, const RowNorm& norm, const Linear& weight,
                         const Tensor& y) override {
    const auto& linear = static_cast<const cuda::CudaLinear&>(weight);
    if (residual.pending || y.rows > kMaxPackedRows || !linear.can_normalise()) {
      Backend::linear_normalised(residual, norm, weight, y);
    } else {
      linear.apply_few(normalised(residual, norm), {y.data, y.dtype, y.cols, y.stride}, products());
    }
  }

  void linear_gated(ResidualStream& residual, const RowNorm& norm, const Linear& weight, const Tensor& gate_up,
                    const Tensor& out) override {
    const auto& linear = static_cast<const cuda::CudaLinear&>(weight);
    if (residual.pending || out.rows > kMaxPackedRows || !linear.can_normalise() || !linear.can_gate()) {
      Backend::linear_gated(residual, norm, weight, gate_up, out);
    } else {
      const cuda::ProductOutput y = {halves(out).data, out.dtype, out.cols, out.stride, cuda::ProductEnd::gate};
      linear.apply_few(normalised(residual, norm), y, products());
    }
  }

  void linear_added(const Linear& weight, const Tensor& x, ResidualStream& residual) override {
    const auto& linear = static_cast<const cuda::CudaLinear&>(weight);
    if (x.rows > kMaxPackedRows || !linear.can_add()) {
      Backend::linear_added(weight, x, residual);
      return;
    }
    check(!residual.pending, "the last block's sum has been added");
    const Tensor& sum = residual.hidden;
    const cuda::ProductOutput y = {halves(sum).data, sum.dtype, sum.cols, sum.stride, cuda::ProductEnd::add};
    const MatrixView<__half> rows = halves(x);
    linear.apply_few({.data = rows.data, .stride = rows.stride, .rows = static_cast<int>(rows.rows)}, y, products());
  }

  void swiglu(const Tensor& gate_up, float limit, const Tensor& out) override {
    check(limit == 0.0F, "limited swiglu is not there yet");
    check(gate_up.cols == 2 * out.cols && gate_up.rows == out.rows, "gate and up columns");
    cuda::swiglu(halves(gate_up), halves(out), stream());
  }

  void route_experts(const Tensor& logits, bool normalise, const Tensor& ids, const Tensor& weights) override {
    cuda::route_experts(floats(logits), normalise, integers(ids), floats(weights), stream());
  }

  void experts(const ExpertWeights& weights, const Tensor& x, const Tensor& ids, const Tensor& route_weights,
               const Tensor& out) override {
    const cuda::ExpertRunner::Call call = {weights, halves(x), integers(ids), floats(route_weights), halves(out)};
    if (experts_.run(call, products())) graphs_.clear();
  }

  void find_non_finite(const Tensor& x, const Tensor& out) override {
    if (x.dtype == DType::f32) {
      cuda::find_non_finite(floats(x), column(out), stream());
    } else {
      cuda::find_non_finite(halves(x), column(out), stream());
    }
  }

  void argmax(const Tensor& x, const Tensor& out) override {
    reserve(argmax_, cuda::argmax_scratch_bytes(x.rows), "scratch memory of argmax");
    cuda::argmax(floats(x), argmax_.data(), column(out), stream());
  }

  void run_step(const Batch& batch, int variant, const std::function<void()>& step) override {
    if (batch.rows > kMaxPackedRows) {
      step();
      return;
    }
    const StepScope scope(in_step_);
    graphs_.run({.rows = batch.rows,
                 .spans = static_cast<std::int64_t>(batch.spans.size()),
                 .splits = splits_of(batch),
                 .variant = variant},
                step);
  }

  void forget_steps() override { graphs_.clear(); }

 private:
  static constexpr std::int64_t kAttentionBytes = std::int64_t{64} << 20;

  const cuda::Stream& stream() const { return stream_.get(); }

  static void require_supported(const LinearSource& source) {
    check(source.plan->tensor.groups == 1, "grouped linear is not there yet");
    if (std::none_of(source.parts.begin(), source.parts.end(), cpu::is_fp4)) return;
    throw Error(Error::missing_capability,
                fmt::format("{}: FP4 weights have no product on a GPU yet; --device cpu has one", source.plan->name));
  }
  cuda::ProductContext products() { return {stream(), gemm_, workspace_}; }

  /// Marks a step as being run for as long as the scope lives.
  class StepScope {
   public:
    explicit StepScope(bool& in_step) : in_step_(in_step) { in_step_ = true; }
    ~StepScope() { in_step_ = false; }
    StepScope(const StepScope&) = delete;
    StepScope& operator=(const StepScope&) = delete;

   private:
    bool& in_step_;
  };

  /// Rows that one launch of attention takes, for which there is scratch memory then: long prompts go in groups, so
  /// that the sums of the splits stay within bounded memory.
  std::int64_t attention_rows(const Batch& batch, const AttentionShape& shape, std::int64_t splits) {
    const auto one_row =
        static_cast<std::int64_t>(cuda::attention_scratch_bytes(1, shape.heads, shape.head_dim, splits));
    const std::int64_t rows = std::min(batch.rows, std::max(std::int64_t{kMaxPackedRows}, kAttentionBytes / one_row));
    reserve(attention_, static_cast<std::size_t>(rows * one_row), "scratch memory of attention");
    return rows;
  }

  static std::size_t row_bytes(const Tensor& tensor, std::size_t bytes) {
    const std::size_t width = static_cast<std::size_t>(tensor.cols) * size_of(tensor.dtype);
    check(bytes == width * static_cast<std::size_t>(tensor.rows), "as many bytes as the tensor has");
    return width;
  }

  /// Scratch memory that is kept between calls. Growing frees what recorded steps use, so they are forgotten; cudaFree
  /// waits for kernels that still run.
  void reserve(cuda::DeviceBuffer& buffer, std::size_t bytes, std::string_view what) {
    if (buffer.size() >= bytes) return;
    graphs_.clear();
    buffer = cuda::DeviceBuffer();
    buffer = cuda::DeviceBuffer(bytes, what);
  }

  Hardware hardware_;
  ThreadTeam team_;
  cuda::OwnStream stream_;
  cuda::Gemm gemm_;
  cuda::DeviceBuffer workspace_;
  cuda::TransferBuffer transfers_;
  cuda::StepGraphs graphs_;
  bool in_step_ = false;  ///< of run_step(), before which everything queued earlier has ended
  cuda::ExpertRunner experts_;
  cuda::DeviceBuffer attention_;
  cuda::DeviceBuffer argmax_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const CudaBackendOptions& options) {
  return std::make_unique<CudaBackend>(options);
}

}  // namespace qpn8
