#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backend/cpu_backend.hpp"
#include "backend/weight_file.hpp"

namespace qpn8 {
namespace {

using test::gaussian;
using test::on_device;
using test::on_host;
using test::same_bits;

constexpr std::int64_t kHeads = 6;
constexpr std::int64_t kKvHeads = 2;
constexpr std::int64_t kHeadDim = 20;

/// Queries, keys and values of one sequence.
struct Sequence {
  Sequence(std::int64_t tokens, unsigned seed)
      : q(gaussian(tokens, kHeads * kHeadDim, seed)),
        k(gaussian(tokens, kKvHeads * kHeadDim, seed + 1)),
        v(gaussian(tokens, kKvHeads * kHeadDim, seed + 2)) {}

  std::int64_t tokens() const { return q.rows(); }

  Matrix<float> q;
  Matrix<float> k;
  Matrix<float> v;
};

/// Some tokens of a sequence that run in one pass.
struct Chunk {
  const Sequence* sequence;
  int slot;
  std::int64_t first;
  std::int64_t rows;
};

Matrix<float> rows_of(const Matrix<float>& matrix, std::int64_t first, std::int64_t count) {
  Matrix<float> rows(count, matrix.cols());
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(matrix.view().row(first + i).begin(), matrix.cols(), rows.view().row(i).begin());
  }
  return rows;
}

class Sequences : public testing::TestWithParam<DType> {
 protected:
  std::unique_ptr<KvCache> make_cache() {
    return backend_->make_kv_cache(
        {.layers = 2, .slots = 3, .capacity = 300, .kv_heads = kKvHeads, .head_dim = kHeadDim, .dtype = GetParam()});
  }

  /// One pass over some chunks; the attended rows of all of them.
  Matrix<float> pass(KvCache& cache, const std::vector<Chunk>& chunks) {
    std::vector<Matrix<float>> q;
    std::vector<Matrix<float>> k;
    std::vector<Matrix<float>> v;
    std::vector<BatchSpan> spans;
    std::int64_t rows = 0;
    for (const Chunk& chunk : chunks) {
      q.push_back(rows_of(chunk.sequence->q, chunk.first, chunk.rows));
      k.push_back(rows_of(chunk.sequence->k, chunk.first, chunk.rows));
      v.push_back(rows_of(chunk.sequence->v, chunk.first, chunk.rows));
      spans.push_back({chunk.slot, chunk.first, rows, chunk.rows});
      rows += chunk.rows;
    }
    Matrix<std::int32_t> positions(rows, 1);
    Matrix<std::int32_t> slots(rows, 1);
    for (const BatchSpan& span : spans) {
      for (std::int64_t i = 0; i < span.rows; ++i) {
        positions(span.first_row + i, 0) = static_cast<std::int32_t>(span.first_position + i);
        slots(span.first_row + i, 0) = span.slot;
      }
    }
    const OwnedTensor position_tensor = on_device(*backend_, DType::i32, positions);
    const OwnedTensor slot_tensor = on_device(*backend_, DType::i32, slots);
    const Batch batch = {
        .ids = {}, .positions = position_tensor.tensor, .slots = slot_tensor.tensor, .spans = spans, .rows = rows};
    const OwnedTensor q_tensor = on_device(*backend_, DType::f32, test::stacked(q));
    const OwnedTensor k_tensor = on_device(*backend_, DType::f32, test::stacked(k));
    const OwnedTensor v_tensor = on_device(*backend_, DType::f32, test::stacked(v));
    const OwnedTensor out = backend_->allocate(DType::f32, rows, kHeads * kHeadDim);
    const AttentionShape shape = {
        .heads = kHeads, .kv_heads = kKvHeads, .head_dim = kHeadDim, .scale = 0.2F, .window = 0};
    backend_->append_kv(cache, 1, k_tensor.tensor, v_tensor.tensor, batch);
    backend_->attention(cache, 1, q_tensor.tensor, batch, shape, out.tensor);
    return on_host<float>(*backend_, out.tensor);
  }

  Matrix<float> whole(const Sequence& sequence, int slot) {
    const auto cache = make_cache();
    return pass(*cache, {{&sequence, slot, 0, sequence.tokens()}});
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend({.threads = 2});
};

INSTANTIATE_TEST_SUITE_P(Types, Sequences, testing::Values(DType::f16, DType::f32),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST_P(Sequences, ChunksOfAnySizeGiveTheBitsOfTheWholePrompt) {
  const Sequence sequence(280, 1);
  const Matrix<float> expected = whole(sequence, 1);
  for (const std::int64_t chunk : {1, 5, 64, 257}) {
    const auto cache = make_cache();
    for (std::int64_t first = 0; first < sequence.tokens(); first += chunk) {
      const std::int64_t rows = std::min(chunk, sequence.tokens() - first);
      const Matrix<float> part = pass(*cache, {{&sequence, 1, first, rows}});
      ASSERT_TRUE(same_bits<float>(part.view(), expected.view().row_range(first, rows))) << chunk << " at " << first;
    }
  }
}

TEST_P(Sequences, SequencesOfOneBatchDoNotSeeEachOther) {
  const Sequence a(40, 1);
  const Sequence b(25, 10);
  const Sequence c(9, 20);
  const auto cache = make_cache();
  pass(*cache, {{&b, 0, 0, 20}});
  const Matrix<float> together = pass(*cache, {{&c, 1, 0, 9}, {&a, 2, 0, 40}, {&b, 0, 20, 5}});
  EXPECT_TRUE(same_bits<float>(together.view().row_range(0, 9), whole(c, 0).view()));
  EXPECT_TRUE(same_bits<float>(together.view().row_range(9, 40), whole(a, 0).view()));
  EXPECT_TRUE(same_bits<float>(together.view().row_range(49, 5), whole(b, 0).view().row_range(20, 5)));
}

TEST_P(Sequences, ASlotThatServesAnotherSequenceForgetsTheLast) {
  const Sequence first(250, 1);
  const Sequence second(30, 10);
  const auto cache = make_cache();
  pass(*cache, {{&first, 2, 0, 250}});
  EXPECT_TRUE(same_bits<float>(pass(*cache, {{&second, 2, 0, 30}}).view(), whole(second, 0).view()));
}

}  // namespace
}  // namespace qpn8
