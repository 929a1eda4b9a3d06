#include <gtest/gtest.h>

#include <fstream>

#include "backend/cpu_backend.hpp"
#include "backend/weight_file.hpp"
#include "support/allocation_count.hpp"

namespace qpn8 {
namespace {

using test::gaussian;
using test::on_device;
using test::planned;

constexpr std::int64_t kRows = 40;
constexpr std::int64_t kWidth = 96;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kHeadDim = 32;
constexpr std::int64_t kHidden = 64;
constexpr std::int64_t kExperts = 5;
constexpr std::int64_t kVocabulary = 100;
constexpr std::int64_t kQkv = (kHeads + 2 * kKvHeads) * kHeadDim;

/// Pages that the process has mapped: large buffers come from there and not from operator new.
long mapped_pages() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

/// The operators of a decoder with experts, called as a model calls them.
class Decoder {
 public:
  explicit Decoder(Backend& backend) : backend_(backend) {
    file_.add("table", DType::f16, gaussian(kVocabulary, kWidth, 1));
    file_.add("qkv", DType::f16, gaussian(kQkv, kWidth, 2, 0.1F));
    file_.add("o", DType::f16, gaussian(kWidth, kHeads * kHeadDim, 3, 0.1F));
    file_.add("router", DType::f16, gaussian(kExperts, kWidth, 4));
    file_.add("gate_up", DType::f16, gaussian(2 * kHidden, kWidth, 5, 0.1F));
    file_.add("down", DType::f16, gaussian(kWidth, kHidden, 6, 0.1F));
    file_.add("odd", DType::f16, gaussian(50, kWidth, 7, 0.1F));
    const Checkpoint& checkpoint = file_.open();
    table_ = backend.load_table(checkpoint, checkpoint.tensor("table"));
    head_ = backend.share_linear(table_.tensor);
    qkv_ = load("qkv", planned(Route::qpn8, kQkv, kWidth), std::vector<float>(kQkv, 0.5F));
    o_ = load("o", planned(Route::dense, kWidth, kHeads * kHeadDim));
    router_ = load("router", planned(Route::dense, kExperts, kWidth));
    odd_ = load("odd", planned(Route::qpn8, 50, kWidth, 64));
    for (std::int64_t e = 0; e < kExperts; ++e) {
      const Route route = e % 2 == 0 ? Route::qpn8 : Route::dense;
      experts_.gate_up.push_back(load("gate_up", planned(route, 2 * kHidden, kWidth)));
      experts_.down.push_back(load("down", planned(route, kWidth, kHidden)));
    }
    cache_ =
        backend.make_kv_cache({.layers = 1, .slots = 2, .capacity = 1000, .kv_heads = kKvHeads, .head_dim = kHeadDim});
  }

  /// `rows` tokens of the sequence in slot 1, from position `first` on.
  void step(std::int64_t first, std::int64_t rows) {
    const auto part = [rows](const OwnedTensor& tensor) { return tensor.tensor.row_range(0, rows); };
    for (std::int64_t t = 0; t < rows; ++t) {
      ids_.tensor.host<std::int32_t>().row(t)[0] = static_cast<std::int32_t>((first + t) % kVocabulary);
      positions_.tensor.host<std::int32_t>().row(t)[0] = static_cast<std::int32_t>(first + t);
      slots_.tensor.host<std::int32_t>().row(t)[0] = 1;
    }
    const BatchSpan span = {1, first, 0, rows};
    const Batch batch = {part(ids_), part(positions_), part(slots_), {&span, 1}, rows};
    const Tensor qkv = part(projected_);
    const Tensor q = qkv.col_range(0, kHeads * kHeadDim);
    const Tensor k = qkv.col_range(q.cols, kKvHeads * kHeadDim);
    const Tensor v = qkv.col_range(q.cols + k.cols, kKvHeads * kHeadDim);

    backend_.embed(table_.tensor, batch.ids, part(hidden_));
    backend_.rope_angles(batch.positions, frequencies_.tensor, 1.0F, part(angles_));
    backend_.rms_norm(part(hidden_), norm_.tensor, 1e-6F, part(normed_));
    backend_.linear(*qkv_, part(normed_), qkv);
    backend_.head_rms_norm(q, head_norm_.tensor, 1e-6F);
    backend_.rope(q, kHeadDim, part(angles_), RopePairing::halves);
    backend_.rope(k, kHeadDim, part(angles_), RopePairing::interleaved);
    backend_.append_kv(*cache_, 0, k, v, batch);
    const AttentionShape shape = {.heads = kHeads, .kv_heads = kKvHeads, .head_dim = kHeadDim, .scale = 0.2F};
    backend_.attention(*cache_, 0, q, batch, shape, part(attended_));
    backend_.linear(*o_, part(attended_), part(delta_));
    backend_.add_rms_norm(part(hidden_), part(delta_), norm_.tensor, 1e-6F, part(normed_));
    backend_.linear(*odd_, part(normed_), part(odd_out_));
    backend_.linear(*router_, part(normed_), part(router_logits_));
    backend_.route_experts(part(router_logits_), true, part(expert_ids_), part(expert_weights_));
    backend_.experts(experts_, part(normed_), part(expert_ids_), part(expert_weights_), part(delta_));
    backend_.find_non_finite(part(delta_), part(found_));
    backend_.gather_rows(part(delta_), part(last_).row_range(0, 1), normed_.tensor.row_range(0, 1));
    backend_.linear(*head_, normed_.tensor.row_range(0, 1), logits_.tensor);
  }

  bool finite() const { return found_.tensor.host<std::int32_t>().row(0)[0] == -1; }

 private:
  std::unique_ptr<Linear> load(const std::string& name, const PlannedProjection& plan, std::vector<float> bias = {}) {
    const WeightPart part = file_.part(name);
    return backend_.load_linear(
        {.plan = &plan, .checkpoint = &file_.opened(), .parts = {part}, .bias = std::move(bias)});
  }

  OwnedTensor floats(std::int64_t cols) { return backend_.allocate(DType::f32, kRows, cols); }
  OwnedTensor integers(std::int64_t cols) { return backend_.allocate(DType::i32, kRows, cols); }

  Backend& backend_;
  test::WeightFile file_;
  OwnedTensor table_;
  std::unique_ptr<Linear> head_;
  std::unique_ptr<Linear> qkv_;
  std::unique_ptr<Linear> o_;
  std::unique_ptr<Linear> router_;
  std::unique_ptr<Linear> odd_;
  ExpertWeights experts_;
  std::unique_ptr<KvCache> cache_;
  OwnedTensor frequencies_ = on_device(backend_, DType::f32, gaussian(1, kHeadDim / 2, 8));
  OwnedTensor norm_ = on_device(backend_, DType::f32, gaussian(1, kWidth, 9));
  OwnedTensor head_norm_ = on_device(backend_, DType::f32, gaussian(1, kHeadDim, 10));
  OwnedTensor ids_ = integers(1);
  OwnedTensor positions_ = integers(1);
  OwnedTensor slots_ = integers(1);
  OwnedTensor last_ = integers(1);
  OwnedTensor found_ = integers(1);
  OwnedTensor expert_ids_ = integers(2);
  OwnedTensor hidden_ = floats(kWidth);
  OwnedTensor normed_ = floats(kWidth);
  OwnedTensor angles_ = floats(kHeadDim);
  OwnedTensor projected_ = floats(kQkv);
  OwnedTensor attended_ = floats(kHeads * kHeadDim);
  OwnedTensor delta_ = floats(kWidth);
  OwnedTensor odd_out_ = floats(50);
  OwnedTensor router_logits_ = floats(kExperts);
  OwnedTensor expert_weights_ = floats(2);
  OwnedTensor logits_ = backend_.allocate(DType::f32, 1, kVocabulary);
};

class Allocation : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Threads, Allocation, testing::Values(1, 2, 5));

TEST_P(Allocation, NoOperatorAllocatesAfterTheFirstPassOfAShape) {
  const auto backend = make_cpu_backend({.threads = GetParam()});
  Decoder decoder(*backend);
  decoder.step(0, kRows);
  decoder.step(kRows, 1);
  mapped_pages();  // a stream's own first use
  const long pages = mapped_pages();
  const long before = test::allocation_count();
  // The sequence grows past several splits of attention (tokens in between are left out, which are zeros to it);
  // another prompt is as long as the first.
  for (std::int64_t position = kRows + 1; position < 700; position += 11) decoder.step(position, 1);
  decoder.step(0, kRows);
  decoder.step(kRows, kRows);
  const long after = test::allocation_count();
  EXPECT_EQ(after, before);
  EXPECT_EQ(mapped_pages(), pages);
  EXPECT_TRUE(decoder.finite());
}

}  // namespace
}  // namespace qpn8
