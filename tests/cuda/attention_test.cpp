#include <gtest/gtest.h>

#include <cmath>

#include "cuda/gpu_test.hpp"

namespace qpn8 {
namespace {

using test::activations;
using test::floats_of;
using test::half_gaussian;
using test::relative_l2;
using test::same_bits;

struct Case {
  DType dtype = DType::f16;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 32;
  std::int64_t window = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << to_string(c.dtype) << " heads " << c.heads << "/" << c.kv_heads << " of " << c.head_dim << " window "
             << c.window;
}

/// Rows of a batch on a device, one span a sequence.
class DeviceBatch {
 public:
  DeviceBatch(Backend& device, const std::vector<BatchSpan>& spans) : spans_(spans) {
    for (const BatchSpan& span : spans) batch_.rows += span.rows;
    Matrix<std::int32_t> slots(batch_.rows, 1);
    Matrix<std::int32_t> positions(batch_.rows, 1);
    std::int64_t row = 0;
    for (const BatchSpan& span : spans) {
      for (std::int64_t i = 0; i < span.rows; ++i, ++row) {
        slots(row, 0) = span.slot;
        positions(row, 0) = static_cast<std::int32_t>(span.first_position + i);
      }
    }
    slots_ = test::on_device(device, DType::i32, slots);
    positions_ = test::on_device(device, DType::i32, positions);
    batch_.ids = positions_.tensor;
    batch_.positions = positions_.tensor;
    batch_.slots = slots_.tensor;
    batch_.spans = spans_;
  }
  const Batch& get() const { return batch_; }

 private:
  std::vector<BatchSpan> spans_;
  OwnedTensor slots_;
  OwnedTensor positions_;
  Batch batch_;
};

class CudaAttention : public test::GpuTest {
 protected:
  static constexpr std::int64_t kCapacity = 700;
  static constexpr int kSlots = 2;

  /// A cache with `tokens` tokens in slot 1 and half as many in slot 0.
  std::unique_ptr<KvCache> filled(Backend& device, const Case& c, std::int64_t tokens) {
    auto cache = device.make_kv_cache({.layers = 2,
                                       .slots = kSlots,
                                       .capacity = kCapacity,
                                       .kv_heads = c.kv_heads,
                                       .head_dim = c.head_dim,
                                       .dtype = c.dtype});
    for (int slot = 0; slot < kSlots; ++slot) {
      const std::int64_t count = slot == 1 ? tokens : (tokens + 1) / 2;
      const DeviceBatch batch(device, {{.slot = slot, .first_position = 0, .first_row = 0, .rows = count}});
      const Matrix<float> k = half_gaussian(count, c.kv_heads * c.head_dim, 10 + static_cast<unsigned>(slot));
      const Matrix<float> v = half_gaussian(count, c.kv_heads * c.head_dim, 20 + static_cast<unsigned>(slot));
      device.append_kv(*cache, 1, activations(device, k).tensor, activations(device, v).tensor, batch.get());
    }
    return cache;
  }

  Matrix<float> attend(Backend& device, const Case& c, const KvCache& cache, const std::vector<BatchSpan>& spans,
                       const Matrix<float>& q) {
    const DeviceBatch batch(device, spans);
    const OwnedTensor out = device.allocate(device.activation_type(), q.rows(), q.cols());
    const AttentionShape shape = {.heads = c.heads,
                                  .kv_heads = c.kv_heads,
                                  .head_dim = c.head_dim,
                                  .scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim)),
                                  .window = c.window};
    device.attention(cache, 1, activations(device, q).tensor, batch.get(), shape, out.tensor);
    return floats_of(device, out.tensor);
  }

  void expect_the_cpus(const Case& c, std::int64_t tokens, std::int64_t rows) {
    const std::vector<BatchSpan> spans = {
        {.slot = 1, .first_position = tokens - rows, .first_row = 0, .rows = rows},
        {.slot = 0, .first_position = (tokens + 1) / 2 - 1, .first_row = rows, .rows = 1}};
    const Matrix<float> q = half_gaussian(rows + 1, c.heads * c.head_dim, 5, 2.0F);
    const Matrix<float> expected = attend(cpu(), c, *filled(cpu(), c, tokens), spans, q);
    const Matrix<float> found = attend(gpu(), c, *filled(gpu(), c, tokens), spans, q);
    EXPECT_LE(relative_l2(found.view(), expected.view()), test::kHalfTolerance)
        << c << ", " << tokens << " tokens, " << rows << " rows";
  }
};

TEST_F(CudaAttention, IsTheCpusForEveryWidthAndGroupOfHeads) {
  for (const DType dtype : {DType::f16, DType::f32}) {
    for (const std::int64_t head_dim : {4, 20, 32, 64, 80, 128, 132, 256}) {
      expect_the_cpus({.dtype = dtype, .head_dim = head_dim}, 70, 1);
      expect_the_cpus({.dtype = dtype, .head_dim = head_dim}, 21, 21);
    }
  }
  for (const std::int64_t group : {1, 2, 3, 5, 8, 9, 40}) {
    expect_the_cpus({.heads = 3 * group, .kv_heads = 3, .head_dim = 16}, 130, 2);
  }
}

TEST_F(CudaAttention, IsTheCpusAcrossSplitsAndWindows) {
  for (const std::int64_t tokens : {1, 63, 64, 65, 128, 129, 500, 700}) {
    for (const std::int64_t window : {0, 1, 2, 63, 64, 65, 300}) {
      expect_the_cpus({.head_dim = 16, .window = window}, tokens, 1);
      expect_the_cpus({.head_dim = 16, .window = window}, tokens, std::min<std::int64_t>(tokens, 40));
    }
  }
}

TEST_F(CudaAttention, ARowDoesNotDependOnTheRowsBesideIt) {
  const Case c = {.window = 270};
  const auto cache = filled(gpu(), c, 300);
  const std::vector<BatchSpan> spans = {{.slot = 1, .first_position = 230, .first_row = 0, .rows = 70},
                                        {.slot = 0, .first_position = 5, .first_row = 70, .rows = 3}};
  const Matrix<float> q = half_gaussian(73, c.heads * c.head_dim, 9);
  const Matrix<float> all = attend(gpu(), c, *cache, spans, q);
  for (const std::int64_t row : {0, 33, 69, 70, 72}) {
    const bool first = row < 70;
    Matrix<float> query(1, q.cols());
    std::copy(q.view().row(row).begin(), q.view().row(row).end(), query.values().begin());
    const std::vector<BatchSpan> span = {
        {.slot = first ? 1 : 0, .first_position = first ? 230 + row : row - 65, .first_row = 0, .rows = 1}};
    const Matrix<float> alone = attend(gpu(), c, *cache, span, query);
    EXPECT_TRUE(same_bits<float>(alone.view(), all.view().row_range(row, 1))) << row;
  }
}

TEST_F(CudaAttention, PreparingHeadsAtOnceIsTheSequenceOfOperators) {
  for (const bool normed : {false, true}) {
    const Case c = {.dtype = DType::f32, .heads = 6, .kv_heads = 3, .head_dim = 20};
    const auto run = [&](Backend& device) {
      const DeviceBatch batch(device, {{.slot = 1, .first_position = 60, .first_row = 0, .rows = 9}});
      const auto cache = filled(device, c, 60);
      const OwnedTensor qkv = activations(device, half_gaussian(9, 12 * c.head_dim, 8));
      const OwnedTensor norm = test::on_device(device, DType::f32, test::gaussian(1, c.head_dim, 3));
      const OwnedTensor rates = test::on_device(device, DType::f32, test::gaussian(1, c.head_dim / 2, 4));
      const OwnedTensor angles = device.allocate(DType::f32, 9, c.head_dim);
      device.rope_angles(batch.get().positions, rates.tensor, 1.0F, angles.tensor);
      const HeadInputs heads = {.q = qkv.tensor.col_range(0, 6 * c.head_dim),
                                .k = qkv.tensor.col_range(6 * c.head_dim, 3 * c.head_dim),
                                .v = qkv.tensor.col_range(9 * c.head_dim, 3 * c.head_dim),
                                .head_dim = c.head_dim,
                                .q_norm = normed ? &norm.tensor : nullptr,
                                .k_norm = normed ? &norm.tensor : nullptr,
                                .eps = 1e-6F,
                                .angles = angles.tensor,
                                .pairing = RopePairing::halves};
      device.prepare_heads(*cache, 1, heads, batch.get());
      const OwnedTensor out = device.allocate(device.activation_type(), 9, 6 * c.head_dim);
      const AttentionShape shape = {.heads = 6, .kv_heads = 3, .head_dim = c.head_dim, .scale = 0.2F};
      device.attention(*cache, 1, heads.q, batch.get(), shape, out.tensor);
      return floats_of(device, out.tensor);
    };
    EXPECT_LE(relative_l2(run(gpu()).view(), run(cpu()).view()), 2 * test::kHalfTolerance) << normed;
  }
}

/// A step of rows of different sequences on the GPU: what attend() gives and leaves in the cache, or the two operators
/// that it stands for.
class CudaAttend : public CudaAttention {
 protected:
  Matrix<float> step(const Case& c, const std::vector<std::int64_t>& lengths, bool at_once, bool normed) {
    const auto rows = static_cast<std::int64_t>(lengths.size());
    const auto cache = filled(gpu(), c, 600);
    std::vector<BatchSpan> spans;
    for (std::int64_t row = 0; row < rows; ++row) {
      spans.push_back({.slot = static_cast<int>(row),
                       .first_position = lengths[static_cast<std::size_t>(row)],
                       .first_row = row,
                       .rows = 1});
    }
    const DeviceBatch batch(gpu(), spans);
    const std::int64_t all_heads = c.heads + 2 * c.kv_heads;
    const OwnedTensor qkv = activations(gpu(), half_gaussian(rows, all_heads * c.head_dim, 8));
    const OwnedTensor norm = test::on_device(gpu(), DType::f32, test::gaussian(1, c.head_dim, 3));
    const OwnedTensor rates = test::on_device(gpu(), DType::f32, test::gaussian(1, c.head_dim / 2, 4));
    const OwnedTensor angles = gpu().allocate(DType::f32, rows, c.head_dim);
    gpu().rope_angles(batch.get().positions, rates.tensor, 1.0F, angles.tensor);
    const HeadInputs heads = {.q = qkv.tensor.col_range(0, c.heads * c.head_dim),
                              .k = qkv.tensor.col_range(c.heads * c.head_dim, c.kv_heads * c.head_dim),
                              .v = qkv.tensor.col_range((c.heads + c.kv_heads) * c.head_dim, c.kv_heads * c.head_dim),
                              .head_dim = c.head_dim,
                              .q_norm = normed ? &norm.tensor : nullptr,
                              .k_norm = normed ? &norm.tensor : nullptr,
                              .eps = 1e-6F,
                              .angles = angles.tensor,
                              .pairing = RopePairing::halves};
    const AttentionShape shape = {
        .heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.head_dim, .scale = 0.2F, .window = c.window};
    const OwnedTensor out = gpu().allocate(DType::f16, 2 * rows, c.heads * c.head_dim);
    const Tensor first = out.tensor.row_range(0, rows);
    if (at_once) {
      gpu().attend(*cache, 1, heads, batch.get(), shape, first);
    } else {
      gpu().prepare_heads(*cache, 1, heads, batch.get());
      gpu().attention(*cache, 1, heads.q, batch.get(), shape, first);
    }
    // Another query at the same positions sees what the step has stored.
    const OwnedTensor q = activations(gpu(), half_gaussian(rows, c.heads * c.head_dim, 9));
    gpu().attention(*cache, 1, q.tensor, batch.get(), shape, out.tensor.row_range(rows, rows));
    return floats_of(gpu(), out.tensor);
  }
};

TEST_F(CudaAttend, HasTheBitsOfItsTwoOperators) {
  const std::vector<std::vector<std::int64_t>> lengths = {{0}, {1}, {63}, {64}, {299, 130}, {300, 511}, {5, 599}};
  for (const DType dtype : {DType::f16, DType::f32}) {
    for (const std::int64_t group : {1, 2, 4, 5, 8}) {
      for (const auto& [head_dim, window] : {std::pair{128, 0}, {20, 70}, {256, 0}, {64, 1}}) {
        const Case c = {.dtype = dtype, .heads = 2 * group, .kv_heads = 2, .head_dim = head_dim, .window = window};
        for (const auto& some : lengths) {
          const bool normed = some.size() == 1;
          EXPECT_TRUE(same_bits<float>(step(c, some, true, normed).view(), step(c, some, false, normed).view()))
              << c << ", " << testing::PrintToString(some);
        }
      }
    }
  }
}

}  // namespace
}  // namespace qpn8
