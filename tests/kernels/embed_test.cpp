#include "kernels/cpu/embed.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "kernels/cpu/gather_rows.hpp"
#include "qpn8/half.hpp"
#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::same_bits;

template <class T>
EmbeddingTable table_of(DType dtype, const Matrix<T>& values) {
  return {dtype, reinterpret_cast<const std::byte*>(values.values().data()), values.rows(), values.cols(),
          values.cols()};
}

template <class T>
void expect_rows(DType dtype, const Matrix<T>& values) {
  const std::vector<std::int32_t> ids = {2, 0, 2, 5};
  const EmbeddingTable table = table_of(dtype, values);
  Matrix<float> expected(4, values.cols());
  embed_reference(table, ids, expected.view());
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    Matrix<float> out(4, values.cols());
    embed(table, ids, out.view(), team);
    EXPECT_TRUE(same_bits<float>(out.view(), expected.view())) << values.cols();
  }
}

TEST(Embed, RowsOfAnyWidthAreConvertedExactly) {
  for_each_isa([] {
    for (const std::int64_t cols : {1, 15, 16, 17, 64, 99, 5000}) {
      const Matrix<float> values = gaussian(6, cols, 1);
      Matrix<Half> halves(6, cols);
      Matrix<BFloat16> bfloats(6, cols);
      for (std::size_t i = 0; i < values.values().size(); ++i) {
        halves.values()[i] = to_half(values.values()[i]);
        bfloats.values()[i] = to_bfloat16(values.values()[i]);
      }
      expect_rows(DType::f32, values);
      expect_rows(DType::f16, halves);
      expect_rows(DType::bf16, bfloats);
    }
  });
}

// The references convert by the base layer's functions, which have their own tests against the definition.
TEST(Embed, EverySixteenBitPatternHasItsValue) {
  Matrix<Half> halves(1, 65536);
  Matrix<BFloat16> bfloats(1, 65536);
  for (int bits = 0; bits < 65536; ++bits) {
    halves(0, bits).bits = static_cast<std::uint16_t>(bits);
    bfloats(0, bits).bits = static_cast<std::uint16_t>(bits);
  }
  const std::vector<std::int32_t> ids = {0};
  for_each_isa([&] {
    ThreadTeam team(1);
    Matrix<float> from_half(1, 65536);
    Matrix<float> from_bfloat(1, 65536);
    embed(table_of(DType::f16, halves), ids, from_half.view(), team);
    embed(table_of(DType::bf16, bfloats), ids, from_bfloat.view(), team);
    for (int bits = 0; bits < 65536; ++bits) {
      const float half = to_float(halves(0, bits));
      const float bfloat = to_float(bfloats(0, bits));
      ASSERT_TRUE(std::bit_cast<std::uint32_t>(half) == std::bit_cast<std::uint32_t>(from_half(0, bits)) ||
                  (std::isnan(half) && std::isnan(from_half(0, bits))))
          << std::hex << bits;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(bfloat), std::bit_cast<std::uint32_t>(from_bfloat(0, bits)))
          << std::hex << bits;
    }
  });
}

TEST(Embed, NoIdsAreNoWork) {
  ThreadTeam team(2);
  const Matrix<float> values = gaussian(2, 8, 1);
  embed(table_of(DType::f32, values), {}, MatrixView<float>(nullptr, 0, 8), team);
}

TEST(GatherRows, CopiesTheNamedRowsOfStridedMatrices) {
  for (const int threads : {1, 2, 3}) {
    ThreadTeam team(threads);
    Matrix<std::byte> in(50, 1204);
    for (std::size_t i = 0; i < in.values().size(); ++i) in.values()[i] = static_cast<std::byte>(i * 7);
    std::vector<std::int32_t> rows(300);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i * 31 % 50);
    Matrix<std::byte> out(300, 1200);
    gather_rows(in.view().col_range(4, 1200), rows, out.view(), team);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_TRUE(same_bits<std::byte>(out.view().row_range(static_cast<std::int64_t>(i), 1),
                                       in.view().col_range(4, 1200).row_range(rows[i], 1)));
    }
    gather_rows(in.view(), {}, MatrixView<std::byte>(nullptr, 0, 1204), team);
  }
}

}  // namespace
}  // namespace qpn8::cpu
