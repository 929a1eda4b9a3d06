// Packed products on a GPU: the shapes of the two sm70 contracts and large ones, 1 and 8 rows, beside the measured read
// ceiling and cuBLAS FP16. A Markdown table on stdout.
//
//   qpn8_cuda_linear_bench [REPEATS]
//
// Weights rotate so that none is in the L2 when it is read again; each product reads what the one before wrote, in a
// graph whose replays are timed; medians.

#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/cuda/check.hpp"
#include "kernels/cuda/qpn8_linear.hpp"

namespace qpn8::cuda {
namespace {

struct Case {
  const char* role;
  int k;
  int n;  ///< of a group
  int groups;
  ScaleKind scales;
};

constexpr Case kCases[] = {
    {"fused_wqa_wkv", 4096, 1536, 1, ScaleKind::block},
    {"wq_b", 1024, 8192, 1, ScaleKind::block},
    {"wo_b", 2048, 4096, 1, ScaleKind::block},
    {"wo_a", 4096, 1024, 2, ScaleKind::block},
    {"shared_experts.down", 512, 4096, 1, ScaleKind::block},
    {"in_proj_qkvz", 2560, 4096, 1, ScaleKind::channel},
    {"out_proj, o_proj", 1536, 2560, 1, ScaleKind::channel},
    {"qkv_proj", 2560, 3584, 1, ScaleKind::channel},
    {"hyper_connection.up", 320, 10240, 1, ScaleKind::channel},
    {"hyper_connection.down", 10240, 384, 1, ScaleKind::channel},
    {"8B qkv", 4096, 6144, 1, ScaleKind::channel},
    {"8B o", 4096, 4096, 1, ScaleKind::channel},
    {"8B gate_up", 4096, 24576, 1, ScaleKind::channel},
    {"8B down", 12288, 4096, 1, ScaleKind::channel},
    {"27B gate_up", 5120, 8704, 1, ScaleKind::channel},
    {"LM head", 4096, 151936, 1, ScaleKind::channel},
};

constexpr std::size_t kPoolBytes = std::size_t{1250} << 20;  // of packed codes, and as many of FP16 weights
constexpr std::size_t kRotatedBytes = 400'000'000;           // several times the L2
constexpr int kMaxRows = 8;
constexpr int kMaxWidth = 160'000;
constexpr int kThreads = 256;
constexpr int kBlocks = 1024;

__device__ unsigned long long scrambled(unsigned long long value) {
  value *= 0x9E3779B97F4A7C15ULL;
  value ^= value >> 29;
  value *= 0xBF58476D1CE4E5B9ULL;
  return value ^ value >> 32;
}

__global__ void fill_codes(unsigned char* codes, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += stride) {
    const auto code = static_cast<unsigned char>(scrambled(i + 1));
    codes[i] = (code & 127) == 127 ? 0x40 : code;
  }
}

__global__ void fill_halves(__half* values, std::size_t count, float scale) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += stride) {
    const float uniform = static_cast<float>(scrambled(i + 1) & 0xffff) / 65536.0F - 0.5F;
    values[i] = __float2half_rn(scale * uniform);
  }
}

__global__ void fill_floats(float* values, std::size_t count, float value) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += stride) values[i] = value;
}

/// Reads everything once.
__global__ void read_all(const uint4* data, std::size_t count, unsigned* never) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  unsigned folded = 0;
  std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  for (; i + 3 * stride < count; i += 4 * stride) {
    for (int step = 0; step < 4; ++step) {
      const uint4 v = data[i + step * stride];
      folded ^= v.x ^ v.y ^ v.z ^ v.w;
    }
  }
  if (folded == 0x12345) *never = folded;
}

__global__ void nothing() {}

void check_cublas(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "cublas: %s\n", cublasGetStatusString(status));
  std::exit(1);
}

template <class T>
T* allocate(std::size_t count) {
  T* data = nullptr;
  check_cuda(cudaMalloc(reinterpret_cast<void**>(&data), count * sizeof(T)), "cudaMalloc");
  return data;
}

class Bench {
 public:
  explicit Bench(int repeats) : repeats_(repeats) {
    check_cuda(cudaStreamCreate(&stream_), "cudaStreamCreate");
    check_cublas(cublasCreate(&cublas_));
    check_cublas(cublasSetStream(cublas_, stream_));
    // cuBLAS may not allocate while a graph is recorded.
    constexpr std::size_t kWorkspace = std::size_t{64} << 20;
    check_cublas(cublasSetWorkspace(cublas_, allocate<char>(kWorkspace), kWorkspace));
    fill_codes<<<kBlocks, kThreads, 0, stream_>>>(codes_, kPoolBytes);
    fill_halves<<<kBlocks, kThreads, 0, stream_>>>(dense_, kPoolBytes / sizeof(__half), 0.02F);
    fill_halves<<<kBlocks, kThreads, 0, stream_>>>(x_, std::size_t{kMaxRows} * kMaxWidth, 2.0F);
    fill_halves<<<kBlocks, kThreads, 0, stream_>>>(y_, std::size_t{kMaxRows} * kMaxWidth, 2.0F);
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  double read_ceiling() {
    unsigned* never = allocate<unsigned>(1);
    double best = 0;
    for (const unsigned blocks : {264U, 528U, 1056U, 2112U}) {
      const double us = time(4, [&](int) {
        read_all<<<blocks, 512, 0, stream_>>>(reinterpret_cast<const uint4*>(codes_), kPoolBytes / 16, never);
      });
      best = std::max(best, static_cast<double>(kPoolBytes) / us / 1e6);
    }
    return best;
  }

  double empty_kernel() {
    return time(1000, [&](int) { nothing<<<1, 32, 0, stream_>>>(); });
  }

  double packed(const Case& c, int rows) {
    const std::size_t bytes = std::size_t(c.k) * c.n * c.groups;
    const auto copies = static_cast<int>(std::clamp<std::size_t>(rotated(bytes) / bytes, 2, 128));
    fill_floats<<<kBlocks, kThreads, 0, stream_>>>(scales_, kMaxWidth, 1e-4F);
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    PackedLayout weight;
    weight.n = std::int64_t{c.n} * c.groups;
    weight.k = c.k;
    weight.scale_kind = c.scales;
    weight.scales = scales_;
    return time(std::max(copies, bytes > kRotatedBytes ? 2 : 32), [&](int i) {
      weight.codes = codes_ + static_cast<std::size_t>(i % copies) * bytes;
      const ProductInput in = {.data = i % 2 == 0 ? x_ : y_, .stride = std::int64_t{c.k} * c.groups, .rows = rows};
      const ProductOutput out = {.data = i % 2 == 0 ? y_ : x_, .n = weight.n, .stride = weight.n};
      qpn8_linear_grouped(weight, c.groups, in, out, stream_);
    });
  }

  double cublas(const Case& c, int rows) {
    const std::size_t bytes = std::size_t(c.k) * c.n * c.groups * sizeof(__half);
    const auto copies = static_cast<int>(std::clamp<std::size_t>(rotated(bytes) / bytes, 1, 64));
    const float one = 1;
    const float zero = 0;
    return time(std::max(copies, 8), [&](int i) {
      const __half* weight = dense_ + static_cast<std::size_t>(i % copies) * (bytes / sizeof(__half));
      for (int g = 0; g < c.groups; ++g) {
        check_cublas(cublasGemmEx(cublas_, CUBLAS_OP_T, CUBLAS_OP_N, c.n, rows, c.k, &one,
                                  weight + std::size_t(g) * c.n * c.k, CUDA_R_16F, c.k, x_ + std::size_t(g) * c.k,
                                  CUDA_R_16F, c.k * c.groups, &zero, y_ + std::size_t(g) * c.n, CUDA_R_16F,
                                  c.n * c.groups, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
      }
    });
  }

 private:
  static std::size_t rotated(std::size_t bytes) { return bytes < kRotatedBytes / 4 ? kRotatedBytes : kPoolBytes; }

  /// Microseconds of one of `count` calls of `work`, in a graph: the median of the replays after two.
  template <class Work>
  double time(int count, const Work& work) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    for (int i = 0; i < count; ++i) work(i);
    check_cuda(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    check_cuda(cudaEventCreate(&begin), "cudaEventCreate");
    check_cuda(cudaEventCreate(&end), "cudaEventCreate");
    std::vector<double> us;
    for (int replay = 0; replay < repeats_ + 2; ++replay) {
      check_cuda(cudaEventRecord(begin, stream_), "cudaEventRecord");
      check_cuda(cudaGraphLaunch(executable, stream_), "cudaGraphLaunch");
      check_cuda(cudaEventRecord(end, stream_), "cudaEventRecord");
      check_cuda(cudaEventSynchronize(end), "cudaEventSynchronize");
      float ms = 0;
      check_cuda(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
      if (replay >= 2) us.push_back(ms * 1000.0 / count);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
    std::nth_element(us.begin(), us.begin() + us.size() / 2, us.end());
    return us[us.size() / 2];
  }

  int repeats_;
  cudaStream_t stream_ = nullptr;
  cublasHandle_t cublas_ = nullptr;
  unsigned char* codes_ = allocate<unsigned char>(kPoolBytes);
  __half* dense_ = allocate<__half>(kPoolBytes / sizeof(__half));
  __half* x_ = allocate<__half>(std::size_t{kMaxRows} * kMaxWidth);
  __half* y_ = allocate<__half>(std::size_t{kMaxRows} * kMaxWidth);
  float* scales_ = allocate<float>(kMaxWidth);
};

void print_table(Bench& bench) {
  const double ceiling = bench.read_ceiling();
  std::printf("read ceiling %.3f TB/s, empty kernel %.2f us\n\n", ceiling, bench.empty_kernel());
  std::printf("| role | K x N | M | QPN8 us | cuBLAS FP16 us | ratio | TB/s | of the ceiling | schedule |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|\n");
  const DeviceLimits device = linear_limits();
  for (const Case& c : kCases) {
    for (const int rows : {1, kMaxRows}) {
      const double us = bench.packed(c, rows);
      const double dense = bench.cublas(c, rows);
      const double rate = double(c.k) * c.n * c.groups / us / 1e6;
      const LinearShape shape = {.k = c.k, .n = c.n, .groups = c.groups};
      const auto schedule = choose_schedule(shape, rows, device);
      const std::string groups = c.groups == 1 ? "" : std::to_string(c.groups) + " x ";
      std::printf("| %s | %s%d x %d | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %s |\n", c.role, groups.c_str(), c.k, c.n,
                  rows, us, dense, us / dense, rate, rate / ceiling, schedule->reason.c_str());
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace qpn8::cuda

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 15;
  if (repeats < 1) {
    std::fprintf(stderr, "qpn8_cuda_linear_bench: REPEATS: a number from 1 on\n");
    return 2;
  }
  qpn8::cuda::Bench bench(repeats);
  qpn8::cuda::print_table(bench);
}
