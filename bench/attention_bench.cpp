// Attention beside the bytes that it reads (decode) and the products that it makes (prefill).

#include <benchmark/benchmark.h>

#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "base/buffer.hpp"
#include "kernels/cpu/attention.hpp"
#include "qpn8/half.hpp"

namespace qpn8::cpu {
namespace {

constexpr std::int64_t kHeadDim = 128;

/// A layer per repetition, so that decode finds its keys in memory and not in a cache.
class Layers {
 public:
  Layers(DType dtype, std::int64_t capacity, std::int64_t kv_heads, std::int64_t count) {
    layer_ = {.dtype = dtype, .slots = 1, .capacity = capacity, .kv_heads = kv_heads, .head_dim = kHeadDim};
    const std::size_t bytes = static_cast<std::size_t>(layer_.key_elements()) * size_of(dtype);
    for (std::int64_t i = 0; i < count; ++i) {
      memory_.emplace_back(2 * bytes);
      std::byte* data = memory_.back().data();
      for (std::size_t j = 0; j < 2 * bytes; ++j) data[j] = static_cast<std::byte>(j * 37 % 64);  // finite, any type
    }
  }

  KvLayer layer(std::int64_t index) {
    KvLayer layer = layer_;
    Buffer& memory = memory_[static_cast<std::size_t>(index) % memory_.size()];
    layer.keys = memory.data();
    layer.values = memory.data() + memory.size() / 2;
    return layer;
  }

  std::int64_t layer_bytes() const { return static_cast<std::int64_t>(memory_.front().size()); }

 private:
  KvLayer layer_;
  std::vector<Buffer> memory_;
};

/// range: query heads, key heads, rows, positions before them, dtype.
void run(benchmark::State& state) {
  const std::int64_t heads = state.range(0);
  const std::int64_t rows = state.range(2);
  const std::int64_t past = state.range(3);
  const DType dtype = state.range(4) == 32 ? DType::f32 : DType::f16;
  const std::int64_t width = heads * kHeadDim;
  Layers layers(dtype, past + rows, state.range(1), rows == 1 ? 12 : 1);
  std::vector<float> q(static_cast<std::size_t>(rows * width), 0.01F);
  std::vector<float> out(q.size());
  std::vector<std::int32_t> positions(static_cast<std::size_t>(rows));
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(past));
  const std::vector<std::int32_t> slots(positions.size());
  const AttentionRule rule = {heads, 1.0F / std::sqrt(static_cast<float>(kHeadDim)), 0};
  AttentionScratch scratch;
  ThreadTeam team(static_cast<int>(std::thread::hardware_concurrency()));
  std::int64_t index = 0;
  for (auto _ : state) {
    attention(layers.layer(index++), {q.data(), rows, width}, {slots, positions}, rule, scratch,
              {out.data(), rows, width}, team);
  }
  const double scores = static_cast<double>(rows) * static_cast<double>(past) + static_cast<double>(rows * rows) / 2;
  state.counters["flop/s"] =
      benchmark::Counter(4.0 * scores * static_cast<double>(width), benchmark::Counter::kIsIterationInvariantRate);
  state.SetBytesProcessed(state.iterations() * layers.layer_bytes());
}

BENCHMARK(run)
    ->Name("Attention")
    ->ArgNames({"heads", "kv_heads", "rows", "past", "kv"})
    ->Args({16, 8, 1, 4095, 16})
    ->Args({8, 8, 1, 4095, 16})
    ->Args({32, 8, 1, 4095, 16})
    ->Args({64, 8, 1, 4095, 16})
    ->Args({16, 8, 1, 4095, 32})
    ->Args({16, 8, 512, 0, 16})
    ->Args({16, 8, 512, 4096, 16})
    ->UseRealTime();

}  // namespace
}  // namespace qpn8::cpu

BENCHMARK_MAIN();
