#include "backend/cpu_backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/weight_file.hpp"
#include "kernels/cpu/rms_norm.hpp"
#include "kernels/cpu/rope.hpp"
#include "qpn8/error.hpp"
#include "support/error_of.hpp"
#include "support/isas.hpp"

namespace qpn8 {
namespace {

using test::error_of;
using test::gaussian;
using test::on_device;
using test::on_host;
using test::same_bits;

TEST(CpuBackend, NamesTheInstructionSetItRunsOn) {
  test::for_each_isa([] {
    const cpu::Isa isa = cpu::current_isa();
    const auto backend = make_cpu_backend({.threads = 1, .isa = isa});
    EXPECT_EQ(backend->hardware(), (Hardware{.kind = HardwareKind::cpu, .isa = std::string(cpu::to_string(isa))}));
    EXPECT_EQ(backend->activation_type(), DType::f32);
  });
}

TEST(CpuBackend, ThreadsThatCannotBeAreRefused) {
  EXPECT_EQ(error_of([] { make_cpu_backend({.threads = -1}); }),
            "--threads -1: 1 or more are needed, or 0 for one a processor");
}

TEST(CpuBackend, MemoryIsZeroedAndReadsWhatWasWrittenAcrossStrides) {
  const auto backend = make_cpu_backend({.threads = 1});
  const OwnedTensor owned = backend->allocate(DType::f32, 4, 6);
  const Matrix<float> fresh = on_host<float>(*backend, owned.tensor);
  for (const float value : fresh.values()) EXPECT_EQ(value, 0.0F);
  const Tensor inner = owned.tensor.row_range(1, 2).col_range(2, 3);
  const Matrix<float> values = gaussian(2, 3, 1);
  backend->write(inner, std::as_bytes(values.values()));
  EXPECT_TRUE(same_bits<float>(on_host<float>(*backend, inner).view(), values.view()));
  const Matrix<float> all = on_host<float>(*backend, owned.tensor);
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 6; ++j) {
      const bool written = i >= 1 && i < 3 && j >= 2 && j < 5;
      EXPECT_EQ(all(i, j), written ? values(i - 1, j - 2) : 0.0F);
    }
  }
  EXPECT_EQ(backend->allocate(DType::i32, 0, 5).tensor.rows, 0);
}

TEST(CpuBackend, MemoryThatIsNotThereIsRefusedWithItsSize) {
  const auto backend = make_cpu_backend({.threads = 1});
  std::optional<Error::Kind> kind;
  EXPECT_EQ(error_of([&] { backend->allocate(DType::f32, std::int64_t{1} << 40, 1 << 10); }, &kind),
            "a tensor [1099511627776, 1024] of F32: 4503599627370496 bytes (4194304.0 GiB) of memory are needed, more "
            "than the system gives");
  EXPECT_EQ(kind, Error::missing_capability);
  EXPECT_THAT(error_of([&] { backend->allocate(DType::f32, std::int64_t{1} << 40, std::int64_t{1} << 40); }, &kind),
              testing::HasSubstr("more than 2^63 bytes"));
  EXPECT_EQ(kind, Error::missing_capability);
  EXPECT_THAT(error_of(
                  [&] {
                    backend->make_kv_cache(
                        {.layers = 80, .slots = 8, .capacity = std::int64_t{1} << 40, .kv_heads = 8, .head_dim = 128});
                  },
                  &kind),
              testing::StartsWith("KV cache: "));
  EXPECT_EQ(kind, Error::missing_capability);
}

TEST(CpuBackend, AKvCacheCountsItsBytes) {
  const auto backend = make_cpu_backend({.threads = 1});
  const KvShape shape = {.layers = 3, .slots = 2, .capacity = 64, .kv_heads = 4, .head_dim = 32, .dtype = DType::f16};
  EXPECT_EQ(backend->make_kv_cache(shape)->bytes(), 2 * 3 * 2 * 64 * 4 * 32 * 2);
}

TEST(CpuBackend, AWorkspaceTooSmallForAPromptIsRefusedWhenTheWeightIsLoaded) {
  test::WeightFile file;
  file.add("w", DType::f32, gaussian(4, 4096, 1));
  const Checkpoint& checkpoint = file.open();
  const auto backend = make_cpu_backend({.threads = 1, .workspace_bytes = 4096});
  const PlannedProjection plan = test::planned(Route::dense, 4, 4096);
  std::optional<Error::Kind> kind;
  EXPECT_THAT(
      error_of(
          [&] {
            backend->load_linear({.plan = &plan, .checkpoint = &checkpoint, .parts = {file.part("w")}, .bias = {}});
          },
          &kind),
      testing::StartsWith("layer.proj: products of K=4096 by 1 threads need "));
  EXPECT_EQ(kind, Error::missing_capability);
}

TEST(CpuBackend, NormsRunOnViewsOfAWiderTensor) {
  const auto backend = make_cpu_backend({.threads = 2});
  const Matrix<float> values = gaussian(5, 3 * 32, 1);
  const Matrix<float> weight = gaussian(1, 32, 2);
  const OwnedTensor x = on_device(*backend, DType::f32, values);
  const OwnedTensor w = on_device(*backend, DType::f32, weight);
  backend->head_rms_norm(x.tensor.col_range(32, 32), w.tensor, 1e-5F);
  Matrix<float> expected(5, 32);
  ThreadTeam team(1);
  cpu::rms_norm(values.view().col_range(32, 32), weight.values(), 1e-5F, expected.view(), team);
  const Matrix<float> result = on_host<float>(*backend, x.tensor);
  EXPECT_TRUE(same_bits<float>(result.view().col_range(32, 32), expected.view()));
  EXPECT_TRUE(same_bits<float>(result.view().col_range(0, 32), values.view().col_range(0, 32)));
  EXPECT_TRUE(same_bits<float>(result.view().col_range(64, 32), values.view().col_range(64, 32)));
}

TEST(CpuBackend, RopeTakesThePairingItIsTold) {
  const auto backend = make_cpu_backend({.threads = 1});
  Matrix<std::int32_t> position(1, 1);
  position(0, 0) = 5;
  const OwnedTensor positions = on_device(*backend, DType::i32, position);
  const OwnedTensor frequencies = on_device(*backend, DType::f32, gaussian(1, 8, 3));
  const OwnedTensor angles = backend->allocate(DType::f32, 1, 16);
  backend->rope_angles(positions.tensor, frequencies.tensor, 1.0F, angles.tensor);
  const Matrix<float> values = gaussian(1, 32, 1);
  for (const RopePairing pairing : {RopePairing::halves, RopePairing::interleaved}) {
    const OwnedTensor x = on_device(*backend, DType::f32, values);
    backend->rope(x.tensor, 16, angles.tensor, pairing);
    Matrix<double> expected(1, 32);
    for (std::int64_t i = 0; i < 32; ++i) expected(0, i) = values(0, i);
    cpu::rope_reference(expected.view(), 16, on_host<float>(*backend, angles.tensor).view(),
                        pairing == RopePairing::halves ? 8 : 1);
    EXPECT_LE(test::relative_l2(on_host<float>(*backend, x.tensor).view(), expected.view()), 3e-7);
  }
}

TEST(CpuBackend, NoRowsAreNoWork) {
  test::WeightFile file;
  file.add("w", DType::f32, gaussian(4, 8, 1));
  const Checkpoint& checkpoint = file.open();
  const auto backend = make_cpu_backend({.threads = 2});
  const PlannedProjection plan = test::planned(Route::dense, 4, 8);
  const auto linear =
      backend->load_linear({.plan = &plan, .checkpoint = &checkpoint, .parts = {file.part("w")}, .bias = {1, 2, 3, 4}});
  EXPECT_EQ(test::product(*backend, *linear, Matrix<float>(0, 8)).rows(), 0);
}

}  // namespace
}  // namespace qpn8
