#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/gpu_test.hpp"
#include "qpn8/error.hpp"
#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

using CudaMemory = test::GpuTest;

TEST_F(CudaMemory, WhatIsWrittenIsReadThroughGapsAndInAnySize) {
  for (const std::int64_t rows : {1, 3, 1500}) {
    const Matrix<float> values = test::gaussian(rows, 1024, 4);
    const OwnedTensor wide = gpu().allocate(DType::f32, rows, 1030);
    const Tensor part = wide.tensor.col_range(5, 1024);
    gpu().write(part, std::as_bytes(values.values()));
    EXPECT_TRUE(test::same_bits<float>(test::on_host<float>(gpu(), part).view(), values.view())) << rows;
    EXPECT_EQ(test::on_host<float>(gpu(), wide.tensor)(rows - 1, 0), 0.0F) << "fresh memory is zero";
  }
}

TEST_F(CudaMemory, TheSourceOfAWriteMayChangeAtOnce) {
  const OwnedTensor target = gpu().allocate(DType::i32, 5000, 1);
  for (std::int32_t round = 0; round < 3000; ++round) {
    std::vector<std::int32_t> values(1, round);
    gpu().write(target.tensor.row_range(round, 1), std::as_bytes(std::span(values)));
    values[0] = -1;
  }
  const Matrix<std::int32_t> read = test::on_host<std::int32_t>(gpu(), target.tensor);
  for (std::int32_t round = 0; round < 3000; ++round) ASSERT_EQ(read(round, 0), round);
}

TEST_F(CudaMemory, MoreThanTheGpuHasIsRefusedWithTheSizesAndTheBackendGoesOn) {
  test::expect_error(
      Error::missing_capability, [&] { gpu().allocate(DType::f32, std::int64_t{1} << 24, 1 << 20); },
      testing::AllOf(testing::HasSubstr("a tensor [16777216, 1048576]"), testing::HasSubstr("free")));
  test::expect_error(
      [&] { gpu().make_kv_cache({.layers = 100, .slots = 8, .capacity = 1 << 24, .kv_heads = 8, .head_dim = 128}); },
      Error::missing_capability, testing::HasSubstr("KV cache"));
  EXPECT_EQ(test::on_host<float>(gpu(), gpu().allocate(DType::f32, 1, 4).tensor)(0, 3), 0.0F);
}

TEST_F(CudaMemory, WeightsThatCannotFitAreRefusedBeforeTheFirstIsLoaded) {
  const auto plan_of = [](Route route, std::int64_t n) {
    return Plan(Hardware{}, Topology{}, {}, {test::planned(route, n, 1 << 20)});
  };
  gpu().require_room(plan_of(Route::qpn8, 1024));
  for (const Route route : {Route::dense, Route::qpn8}) {
    test::expect_error(
        Error::missing_capability, [&] { gpu().require_room(plan_of(route, 1 << 24)); },
        testing::HasSubstr("are free"));
  }
}

TEST_F(CudaMemory, AWidthOfHeadsWithoutAKernelIsRefused) {
  for (const std::int64_t head_dim : {6, 260}) {
    test::expect_error(
        [&] { gpu().make_kv_cache({.layers = 1, .slots = 1, .capacity = 8, .kv_heads = 1, .head_dim = head_dim}); },
        Error::unsupported, testing::HasSubstr("head_dim " + std::to_string(head_dim)));
  }
}

}  // namespace
}  // namespace qpn8
