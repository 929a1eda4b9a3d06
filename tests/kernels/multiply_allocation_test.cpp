// Replaces the allocator of this test executable to count what a product takes from it.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "kernels/dense_cases.hpp"
#include "kernels/kernel_cases.hpp"
#include "qpn8/linear.hpp"

namespace {
std::atomic<long> allocations{0};
}  // namespace

// Not inlined: g++ would pair the inlined free() with the operator new of its caller and warn.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace qpn8 {
namespace {

TEST(Multiply, AllocatesNothingForUpToEightRowsAfterTheFirstCall) {
  std::mt19937 random(1);
  ThreadTeam team(2);
  Workspace workspace;
  const PackedWeight weight = test::random_packed(64, 128, ScaleKind::block, random, team);
  const test::DenseWeight dense(DType::f16, 64, 128, random);
  const Matrix<float> x = test::gaussian(8, 128, random);
  Matrix<float> y(8, 64);
  const auto multiply_both = [&](std::int64_t rows) {
    multiply(weight, Schedule{2, 2, true}, x.view().row_range(0, rows), y.view().row_range(0, rows), workspace, team);
    cpu::dense_linear(dense.view(), x.view().row_range(0, rows), y.view().row_range(0, rows), workspace, team);
  };
  multiply_both(1);
  const long before = allocations;
  for (std::int64_t rows = 1; rows <= 8; ++rows) multiply_both(rows);
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace qpn8
