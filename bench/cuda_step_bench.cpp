// What the parts of a decode step cost on a GPU: a step with the shapes of qwen3-8b, recorded and replayed, whole and
// with one part left out or done apart. A Markdown table on stdout.
//
//   qpn8_cuda_step_bench [POSITION] [ROWS]
//
// Four layers of random weights take turns as 36, so that none is in the L2 when it is read again.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda_backend.hpp"
#include "measure/random_weights.hpp"
#include "measure/samples.hpp"

namespace qpn8 {
namespace {

constexpr std::int64_t kHidden = 4096;
constexpr std::int64_t kHeads = 32;
constexpr std::int64_t kKvHeads = 8;
constexpr std::int64_t kHeadDim = 128;
constexpr std::int64_t kInner = 12288;
constexpr std::int64_t kLayers = 36;
constexpr std::size_t kDistinct = 4;
constexpr int kReplays = 20;
constexpr int kSamples = 9;

enum class Attention { at_once, in_two, none };

/// What a step does beside its products.
struct Variant {
  const char* what;
  bool normalises = true;  ///< in its products; else rows are as they are
  bool gates = true;       ///< in its product; else gate and up are left as they are
  bool adds = true;        ///< in its products
  Attention attention = Attention::at_once;
};

constexpr Variant kVariants[] = {
    {.what = "whole"},
    {.what = "no norms", .normalises = false},
    {.what = "not gated", .gates = false},
    {.what = "nothing added", .adds = false},
    {.what = "heads apart from attention", .attention = Attention::in_two},
    {.what = "no attention", .attention = Attention::none},
    {.what = "products alone", .normalises = false, .gates = false, .adds = false, .attention = Attention::none},
};

PlannedProjection planned(Route route, std::int64_t n, std::int64_t k) {
  PlannedProjection plan;
  plan.name = "proj";
  plan.tensor.role = "proj";
  plan.tensor.n = n;
  plan.tensor.k = k;
  plan.tensor.type = WeightType::f16;
  plan.padded_n = n;
  plan.route = route;
  return plan;
}

class Step {
 public:
  Step(Backend& backend, Route route, std::int64_t position, std::int64_t rows) : backend_(backend), rows_(rows) {
    const RandomWeights of_hidden(kHidden, WeightType::f16);
    const RandomWeights of_inner(kInner, WeightType::f16);
    const PlannedProjection qkv = planned(route, (kHeads + 2 * kKvHeads) * kHeadDim, kHidden);
    const PlannedProjection o = planned(route, kHidden, kHeads * kHeadDim);
    const PlannedProjection gate_up = planned(route, 2 * kInner, kHidden);
    const PlannedProjection down = planned(route, kHidden, kInner);
    for (Layer& layer : layers_) {
      layer.qkv = backend.load_linear(of_hidden.source(qkv));
      layer.o = backend.load_linear(of_hidden.source(o));
      LinearSource gated = of_hidden.source(gate_up);
      gated.gated = true;
      layer.gate_up = backend.load_linear(gated);
      layer.down = backend.load_linear(of_inner.source(down));
    }
    cache_ = backend.make_kv_cache({.layers = kLayers,
                                    .slots = static_cast<int>(rows),
                                    .capacity = position + 1,
                                    .kv_heads = kKvHeads,
                                    .head_dim = kHeadDim,
                                    .dtype = DType::f16});
    for (std::int64_t row = 0; row < rows; ++row) {
      spans_.push_back({.slot = static_cast<int>(row), .first_position = position, .first_row = row, .rows = 1});
      slots_.push_back(static_cast<std::int32_t>(row));
      positions_.push_back(static_cast<std::int32_t>(position));
    }
    slots_tensor_ = backend.allocate(DType::i32, rows, 1);
    positions_tensor_ = backend.allocate(DType::i32, rows, 1);
    backend.write(slots_tensor_.tensor, std::as_bytes(std::span(slots_)));
    backend.write(positions_tensor_.tensor, std::as_bytes(std::span(positions_)));
    batch_ = {.ids = slots_tensor_.tensor,
              .positions = positions_tensor_.tensor,
              .slots = slots_tensor_.tensor,
              .spans = spans_,
              .rows = rows};
    hidden_ = activations(kHidden);
    delta_ = activations(kHidden);
    normed_ = activations(kHidden);
    attended_ = activations(kHeads * kHeadDim);
    projected_ = activations((kHeads + 2 * kKvHeads) * kHeadDim);
    gate_up_ = activations(2 * kInner);
    gated_ = activations(kInner);
    norm_ = row(kHidden);
    head_norm_ = row(kHeadDim);
    angles_ = backend.allocate(DType::f32, rows, kHeadDim);
  }

  std::int64_t bytes() const {
    const Layer& layer = layers_.front();
    return kLayers * (layer.qkv->bytes() + layer.o->bytes() + layer.gate_up->bytes() + layer.down->bytes());
  }

  /// Seconds a step.
  double sample(const Variant& variant, int number) {
    const auto pass = [&] { run(variant); };
    backend_.run_step(batch_, number, pass);
    const double seconds = seconds_of([&] {
      for (int i = 0; i < kReplays; ++i) backend_.run_step(batch_, number, pass);
      std::array<std::byte, 2> last{};
      backend_.read(hidden_.tensor.row_range(0, 1).col_range(0, 1), last);
    });
    return seconds / kReplays;
  }

 private:
  struct Layer {
    std::unique_ptr<Linear> qkv;
    std::unique_ptr<Linear> o;
    std::unique_ptr<Linear> gate_up;
    std::unique_ptr<Linear> down;
  };

  OwnedTensor activations(std::int64_t cols) {
    OwnedTensor tensor = backend_.allocate(backend_.activation_type(), rows_, cols);
    write_values(backend_, tensor.tensor, random_values(rows_ * cols));
    return tensor;
  }
  OwnedTensor row(std::int64_t cols) {
    OwnedTensor tensor = backend_.allocate(DType::f32, 1, cols);
    write_values(backend_, tensor.tensor, random_values(cols));
    return tensor;
  }

  void add(const Variant& variant, const Linear& weight, const Tensor& x, ResidualStream& stream) {
    if (variant.adds) {
      backend_.linear_added(weight, x, stream);
    } else {
      backend_.linear(weight, x, stream.normed);
    }
  }

  void attend(const Variant& variant, std::int64_t layer) {
    const Tensor& qkv = projected_.tensor;
    const HeadInputs heads = {.q = qkv.col_range(0, kHeads * kHeadDim),
                              .k = qkv.col_range(kHeads * kHeadDim, kKvHeads * kHeadDim),
                              .v = qkv.col_range((kHeads + kKvHeads) * kHeadDim, kKvHeads * kHeadDim),
                              .head_dim = kHeadDim,
                              .q_norm = &head_norm_.tensor,
                              .k_norm = &head_norm_.tensor,
                              .eps = 1e-6F,
                              .angles = angles_.tensor,
                              .pairing = RopePairing::halves};
    const AttentionShape shape = {.heads = kHeads, .kv_heads = kKvHeads, .head_dim = kHeadDim, .scale = 0.09F};
    if (variant.attention == Attention::at_once) {
      backend_.attend(*cache_, layer, heads, batch_, shape, attended_.tensor);
    } else if (variant.attention == Attention::in_two) {
      backend_.prepare_heads(*cache_, layer, heads, batch_);
      backend_.attention(*cache_, layer, heads.q, batch_, shape, attended_.tensor);
    }
  }

  void run(const Variant& variant) {
    ResidualStream stream = {.hidden = hidden_.tensor, .delta = delta_.tensor, .normed = normed_.tensor};
    const RowNorm norm = {norm_.tensor, 1e-6F};
    for (std::int64_t i = 0; i < kLayers; ++i) {
      const Layer& layer = layers_[static_cast<std::size_t>(i) % kDistinct];
      if (variant.normalises) {
        backend_.linear_normalised(stream, norm, *layer.qkv, projected_.tensor);
      } else {
        backend_.linear(*layer.qkv, stream.normed, projected_.tensor);
      }
      attend(variant, i);
      add(variant, *layer.o, attended_.tensor, stream);
      if (variant.gates && variant.normalises) {
        backend_.linear_gated(stream, norm, *layer.gate_up, gate_up_.tensor, gated_.tensor);
      } else if (variant.normalises) {
        backend_.linear_normalised(stream, norm, *layer.gate_up, gate_up_.tensor);
      } else {
        backend_.linear(*layer.gate_up, stream.normed, gate_up_.tensor);
      }
      add(variant, *layer.down, gated_.tensor, stream);
    }
  }

  Backend& backend_;
  std::int64_t rows_;
  std::array<Layer, kDistinct> layers_;
  std::unique_ptr<KvCache> cache_;
  std::vector<BatchSpan> spans_;
  std::vector<std::int32_t> slots_;
  std::vector<std::int32_t> positions_;
  OwnedTensor slots_tensor_;
  OwnedTensor positions_tensor_;
  Batch batch_;
  OwnedTensor hidden_;
  OwnedTensor delta_;
  OwnedTensor normed_;
  OwnedTensor attended_;
  OwnedTensor projected_;
  OwnedTensor gate_up_;
  OwnedTensor gated_;
  OwnedTensor norm_;
  OwnedTensor head_norm_;
  OwnedTensor angles_;
};

void measure(std::int64_t position, std::int64_t rows) {
  fmt::print(
      "\n{} rows at position {}\n\n| route | step | us a layer | us less than whole | TB/s |\n|---|---|---|---|---|\n",
      rows, position);
  for (const Route route : {Route::qpn8, Route::dense}) {
    const std::unique_ptr<Backend> backend = make_cuda_backend({});
    Step step(*backend, route, position, rows);
    std::vector<Samples> samples(std::size(kVariants));
    for (int round = 0; round < kSamples + 2; ++round) {
      for (std::size_t i = 0; i < std::size(kVariants); ++i) {
        const double seconds = step.sample(kVariants[i], static_cast<int>(i));
        if (round > 1) samples[i].push_back(seconds);  // the first are not replays
      }
    }
    const double whole = median(samples.front());
    for (std::size_t i = 0; i < std::size(kVariants); ++i) {
      const double seconds = median(samples[i]);
      fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} |\n", route == Route::qpn8 ? "QPN8" : "dense", kVariants[i].what,
                 seconds * 1e6 / kLayers, (whole - seconds) * 1e6 / kLayers,
                 static_cast<double>(step.bytes()) / seconds * 1e-12);
    }
  }
}

}  // namespace
}  // namespace qpn8

int main(int argc, char** argv) {
  const long position = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 200;
  const long rows = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 1;
  qpn8::measure(position, rows);
  return 0;
}
