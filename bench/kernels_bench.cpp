// The CPU products beside what the machine can do: products of weights far beyond the last-level cache against a
// read-only probe of as much memory, and the GEMM against a multiply-add probe. All figures of one run belong together;
// QPN8_THREADS sets the size of the team.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/buffer.hpp"
#include "kernels/cpu/dense_linear.hpp"
#include "kernels/cpu/probe.hpp"
#include "qpn8/half.hpp"
#include "qpn8/linear.hpp"
#include "qpn8/pack.hpp"

namespace qpn8 {
namespace {

constexpr std::int64_t kInputs = 4096;
constexpr std::int64_t kBytes = std::int64_t{3} << 29;  // 1.5 GB of weights

ThreadTeam& team() {
  static ThreadTeam instance([] {
    const char* threads = std::getenv("QPN8_THREADS");
    return threads != nullptr ? std::atoi(threads) : static_cast<int>(std::thread::hardware_concurrency());
  }());
  return instance;
}

Workspace& workspace() {
  static Workspace instance;
  return instance;
}

std::vector<Half> gaussian_rows(std::int64_t n, std::int64_t k) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<Half> values(static_cast<std::size_t>(n * k));
  for (Half& value : values) value = to_half(normal(random));
  return values;
}

/// `copies` copies of a packed Gaussian weight, one below the other: filling gigabytes with fresh numbers would take
/// minutes and be no harder to read.
PackedWeight repeat(const PackedWeight& block, std::int64_t copies) {
  auto codes = std::make_shared<Buffer>(static_cast<std::size_t>(block.n * block.k * copies));
  PackedWeight weight = block;
  weight.n = block.n * copies;
  weight.scales.clear();
  weight.small_codes.clear();
  for (std::int64_t i = 0; i < copies; ++i) {
    std::memcpy(codes->data() + i * block.n * block.k, block.codes.get(), block.code_bytes().size());
    weight.scales.insert(weight.scales.end(), block.scales.begin(), block.scales.end());
    weight.small_codes.insert(weight.small_codes.end(), block.small_codes.begin(), block.small_codes.end());
  }
  weight.codes = {codes, reinterpret_cast<const std::uint8_t*>(codes->data())};
  return weight;
}

const PackedWeight& big_packed_weight() {
  static const PackedWeight weight = [] {
    const std::vector<Half> rows = gaussian_rows(512, kInputs);
    const PackedWeight block = pack_channelwise(MatrixView<const Half>(rows.data(), 512, kInputs), team());
    return repeat(block, kBytes / (512 * kInputs));
  }();
  return weight;
}

const Buffer& big_half_weight() {
  static const Buffer weight = [] {
    const std::vector<Half> rows = gaussian_rows(512, kInputs);
    Buffer buffer(kBytes);
    for (std::size_t at = 0; at < buffer.size(); at += rows.size() * sizeof(Half)) {
      std::memcpy(buffer.data() + at, rows.data(), rows.size() * sizeof(Half));
    }
    return buffer;
  }();
  return weight;
}

Matrix<float> activations(std::int64_t rows, std::int64_t k) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  Matrix<float> x(rows, k);
  for (float& value : x.values()) value = normal(random);
  return x;
}

void set_rate(benchmark::State& state, const char* name, double per_iteration) {
  state.counters[name] = benchmark::Counter(per_iteration * static_cast<double>(state.iterations()),
                                            benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
}

void read_probe(benchmark::State& state) {
  const auto bytes = std::as_bytes(big_packed_weight().code_bytes());
  for (auto _ : state) benchmark::DoNotOptimize(cpu::read_all(bytes, team()));
  set_rate(state, "bytes", static_cast<double>(bytes.size()));
}

void packed(benchmark::State& state) {
  const PackedWeight& weight = big_packed_weight();
  const Schedule schedule{1, static_cast<int>(state.range(1)), state.range(2) != 0};
  const Matrix<float> x = activations(state.range(0), weight.k);
  Matrix<float> y(state.range(0), weight.n);
  for (auto _ : state) multiply(weight, schedule, x.view(), y.view(), workspace(), team());
  set_rate(state, "bytes", static_cast<double>(weight.bytes()));
}

/// A weight that stays in the second-level cache: what the kernel could do if memory were no limit.
void packed_cached(benchmark::State& state) {
  const std::vector<Half> rows = gaussian_rows(256, kInputs);
  const PackedWeight weight = pack_channelwise(MatrixView<const Half>(rows.data(), 256, kInputs), team());
  const Schedule schedule{1, static_cast<int>(state.range(1)), false};
  const Matrix<float> x = activations(state.range(0), weight.k);
  Matrix<float> y(state.range(0), weight.n);
  for (auto _ : state) multiply(weight, schedule, x.view(), y.view(), workspace(), team());
  set_rate(state, "bytes", static_cast<double>(weight.bytes()));
}

void dense_half(benchmark::State& state) {
  const std::int64_t n = kBytes / 2 / kInputs;
  const cpu::DenseWeightView weight{DType::f16, big_half_weight().data(), n, kInputs};
  const Matrix<float> x = activations(state.range(0), kInputs);
  Matrix<float> y(state.range(0), n);
  for (auto _ : state) cpu::dense_linear(weight, x.view(), y.view(), workspace(), team());
  set_rate(state, "bytes", static_cast<double>(kBytes));
}

void multiply_add_probe(benchmark::State& state) {
  float sink = 0;
  double operations = 0;
  for (auto _ : state) operations = cpu::multiply_add_rounds(1 << 22, team(), sink);
  benchmark::DoNotOptimize(sink);
  set_rate(state, "flop", operations);
}

constexpr std::int64_t kGemmOutputs = 4096;

void packed_gemm(benchmark::State& state) {
  const std::vector<Half> rows = gaussian_rows(kGemmOutputs, kInputs);
  const PackedWeight weight = pack_channelwise(MatrixView<const Half>(rows.data(), kGemmOutputs, kInputs), team());
  const Matrix<float> x = activations(state.range(0), kInputs);
  Matrix<float> y(state.range(0), kGemmOutputs);
  for (auto _ : state) multiply(weight, Schedule{}, x.view(), y.view(), workspace(), team());
  set_rate(state, "flop", 2.0 * static_cast<double>(state.range(0) * kInputs * kGemmOutputs));
}

void dense_half_gemm(benchmark::State& state) {
  const std::vector<Half> rows = gaussian_rows(kGemmOutputs, kInputs);
  const cpu::DenseWeightView weight{DType::f16, rows.data(), kGemmOutputs, kInputs};
  const Matrix<float> x = activations(state.range(0), kInputs);
  Matrix<float> y(state.range(0), kGemmOutputs);
  for (auto _ : state) cpu::dense_linear(weight, x.view(), y.view(), workspace(), team());
  set_rate(state, "flop", 2.0 * static_cast<double>(state.range(0) * kInputs * kGemmOutputs));
}

void pack_half(benchmark::State& state) {
  const std::vector<Half> rows = gaussian_rows(kGemmOutputs, kInputs);
  for (auto _ : state) {
    benchmark::DoNotOptimize(pack_channelwise(MatrixView<const Half>(rows.data(), kGemmOutputs, kInputs), team()));
  }
  set_rate(state, "bytes", static_cast<double>(rows.size() * sizeof(Half)));
}

BENCHMARK(read_probe)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(packed)
    ->ArgNames({"rows", "chains", "prefetch"})
    ->ArgsProduct({{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(packed_cached)
    ->ArgNames({"rows", "chains"})
    ->ArgsProduct({{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 4}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(dense_half)->ArgName("rows")->DenseRange(1, 8)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(multiply_add_probe)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(packed_gemm)->ArgName("rows")->Arg(9)->Arg(64)->Arg(512)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(dense_half_gemm)->ArgName("rows")->Arg(9)->Arg(64)->Arg(512)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(pack_half)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace qpn8

BENCHMARK_MAIN();
