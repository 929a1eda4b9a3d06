#include "kernels/cpu/block_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/attention.hpp"
#include "kernels/row_cases.hpp"
#include "support/isas.hpp"
#include "support/kv_store.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::KvStore;
using test::relative_l2;
using test::same_bits;

constexpr std::int64_t kContext = 70;
constexpr BlockAttentionRule kBlockRule = {.heads = 6, .block = 4, .scale = 0.2F};

/// Rows for the last `rows` positions, each with every third complete block and the last one.
Matrix<std::int32_t> every_third(const Places& places, std::int64_t cols) {
  Matrix<std::int32_t> chosen(static_cast<std::int64_t>(places.slots.size()), cols);
  for (std::int32_t& number : chosen.values()) number = -1;
  for (std::int64_t t = 0; t < chosen.rows(); ++t) {
    const std::int64_t complete = (places.positions[static_cast<std::size_t>(t)] + 1) / kBlockRule.block;
    std::int64_t count = 0;
    for (std::int64_t block = 0; block < complete; ++block) {
      if (block % 3 == 0 || block == complete - 1) chosen(t, count++) = static_cast<std::int32_t>(block);
    }
  }
  return chosen;
}

Matrix<float> attend_blocks(const KvStore& store, const Matrix<float>& q, const Places& places,
                            const Matrix<std::int32_t>& chosen, int threads) {
  ThreadTeam team(threads);
  BlockAttentionScratch scratch;
  Matrix<float> out(q.rows(), q.cols());
  block_attention(store.layer(), q.view(), places.view(), chosen.view(), kBlockRule, scratch, out.view(), team);
  return out;
}

TEST(BlockAttention, SeesTheChosenBlocksAndTheTail) {
  for_each_isa([] {
    for (const DType dtype : {DType::f16, DType::f32}) {
      for (const std::int64_t dim : {16, 33, 64}) {
        KvStore store(dtype, 2, kContext, 2, dim);
        store.fill(1, kContext, 11);
        Places places;
        places.add(1, 0, kContext);
        const Matrix<float> q = gaussian(kContext, kBlockRule.heads * dim, 5);
        const Matrix<std::int32_t> chosen = every_third(places, 18);
        Matrix<double> expected(q.rows(), q.cols());
        block_attention_reference(store.layer(), q.view(), places.view(), chosen.view(), kBlockRule, expected.view());
        const Matrix<float> out = attend_blocks(store, q, places, chosen, 1);
        EXPECT_LE(relative_l2(out.view(), expected.view()), 2e-6) << to_string(dtype) << " " << dim;
        EXPECT_TRUE(same_bits<float>(attend_blocks(store, q, places, chosen, 3).view(), out.view()));
      }
    }
  });
}

TEST(BlockAttention, WithAllBlocksIsCausalAttention) {
  KvStore store(DType::f16, 1, kContext, 2, 32);
  store.fill(0, kContext, 3);
  Places places;
  places.add(0, 0, kContext);
  const Matrix<float> q = gaussian(kContext, kBlockRule.heads * 32, 5);
  Matrix<std::int32_t> chosen(kContext, 18);
  for (std::int64_t t = 0; t < kContext; ++t) {
    const std::int64_t complete = (t + 1) / kBlockRule.block;
    for (std::int64_t j = 0; j < 18; ++j) chosen(t, j) = j < complete ? static_cast<std::int32_t>(j) : -1;
  }
  ThreadTeam team(1);
  AttentionScratch scratch;
  Matrix<float> expected(q.rows(), q.cols());
  attention(store.layer(), q.view(), places.view(), {kBlockRule.heads, kBlockRule.scale, 0}, scratch, expected.view(),
            team);
  EXPECT_LE(relative_l2(attend_blocks(store, q, places, chosen, 1).view(), expected.view()), 2e-6);
}

}  // namespace
}  // namespace qpn8::cpu
