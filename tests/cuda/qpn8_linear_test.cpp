#include "kernels/cuda/qpn8_linear.hpp"

#include <ostream>

#include "cuda/device_array.hpp"
#include "kernels/kernel_cases.hpp"
#include "qpn8/error.hpp"
#include "qpn8/linear.hpp"

namespace qpn8 {
namespace {

using cuda::FixedForm;
using cuda::LinearShape;
using cuda::PackedLayout;
using cuda::ScheduleShape;
using test::DeviceArray;

constexpr double kTolerance = 3e-6;  // of FP32 results against FP64; tensor cores truncate

/// A packed weight on the host and in device memory.
struct DeviceWeight {
  DeviceWeight(const PackedWeight& packed, ThreadTeam& team)
      : host(packed), codes(laid_out(packed, team)), scales(std::span<const float>(packed.scales)) {
    layout = {.n = packed.n,
              .k = packed.k,
              .scale_kind = packed.scale_kind,
              .block_n = packed.block_n,
              .block_k = packed.block_k,
              .codes = codes.data(),
              .scales = scales.data()};
  }

  static std::vector<std::uint8_t> laid_out(const PackedWeight& packed, ThreadTeam& team) {
    std::vector<std::uint8_t> bytes(cuda::packed_code_bytes(packed.n, packed.k));
    cuda::lay_out_codes(packed, 0, bytes, team);
    return bytes;
  }

  PackedWeight host;
  DeviceArray<std::uint8_t> codes;
  DeviceArray<float> scales;
  PackedLayout layout;
};

class Qpn8CudaLinear : public test::KernelTest {
 protected:
  /// Gaussian numbers that FP16 holds.
  Matrix<float> inputs(std::int64_t rows, std::int64_t cols) {
    Matrix<float> x = test::gaussian(rows, cols, random_);
    for (float& value : x.values()) value = to_float(to_half(value));
    return x;
  }

  static std::vector<Half> halves(const Matrix<float>& x) {
    std::vector<Half> result;
    for (const float value : x.values()) result.push_back(to_half(value));
    return result;
  }

  DeviceWeight weight(std::int64_t n, std::int64_t k, ScaleKind kind) {
    return {test::random_packed(n, k, kind, random_, team_), team_};
  }

  /// `run` multiplies rows of x, which are `pad` elements further apart than they are long, as are those of y.
  template <class Run>
  Matrix<float> product(const Matrix<float>& x, std::int64_t rows, std::int64_t n, const Run& run) {
    constexpr std::int64_t kPad = 8;
    Matrix<float> wide(rows, x.cols() + kPad);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < wide.cols(); ++j) wide(i, j) = j < x.cols() ? x(i, j) : std::nanf("");
    }
    DeviceArray<Half> in{std::span<const Half>(halves(wide))};
    DeviceArray<float> out(static_cast<std::size_t>(rows * (n + kPad)));
    const cuda::ProductInput input = {
        .data = reinterpret_cast<const __half*>(in.data()), .stride = wide.cols(), .rows = static_cast<int>(rows)};
    run(input, cuda::ProductOutput{.data = out.data(), .dtype = DType::f32, .n = n, .stride = n + kPad});
    const std::vector<float> values = out.get();
    Matrix<float> y(rows, n);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < n + kPad; ++j) {
        const float value = values[static_cast<std::size_t>(i * (n + kPad) + j)];
        if (j < n) {
          y(i, j) = value;
        } else {
          EXPECT_TRUE(std::isnan(value)) << "written beyond the row";
        }
      }
    }
    return y;
  }

  Matrix<float> multiply(const DeviceWeight& w, const Matrix<float>& x, std::int64_t rows) {
    return product(x, rows, w.layout.n, [&](const cuda::ProductInput& in, const cuda::ProductOutput& out) {
      cuda::qpn8_linear(w.layout, in, nullptr, out, stream_);
    });
  }

  Matrix<float> multiply(const DeviceWeight& w, const ScheduleShape& schedule, const Matrix<float>& x,
                         std::int64_t rows) {
    return product(x, rows, w.layout.n, [&](const cuda::ProductInput& in, const cuda::ProductOutput& out) {
      cuda::qpn8_linear_scheduled(w.layout, 1, schedule, in, nullptr, out, stream_);
    });
  }

  void expect_close(const DeviceWeight& w, const Matrix<float>& x, const Matrix<float>& y, const std::string& what) {
    Matrix<double> expected(y.rows(), y.cols());
    multiply_reference(w.host, x.view().row_range(0, y.rows()), expected.view());
    EXPECT_LE(test::relative_l2(y.view(), expected.view()), kTolerance) << what;
  }

  /// Every row count: against FP64, and each row bit for bit against the 8-row call.
  void expect_rows(const DeviceWeight& w, const std::string& what) {
    const Matrix<float> x = inputs(16, w.layout.k);
    const Matrix<float> eight = multiply(w, x, 8);
    for (std::int64_t rows = 1; rows <= 16; rows += rows < 8 ? 1 : 4) {
      const Matrix<float> y = multiply(w, x, rows);
      expect_close(w, x, y, what + " rows " + std::to_string(rows));
      const std::int64_t same = std::min<std::int64_t>(rows, 8);
      EXPECT_EQ(test::bits(y.view().row_range(0, same)), test::bits(eight.view().row_range(0, same)))
          << what << " rows " << rows;
    }
  }

  std::mt19937 random_{11};
  ThreadTeam team_{2};
};

std::string name(std::int64_t k, std::int64_t n, ScaleKind kind) {
  return "K=" + std::to_string(k) + " N=" + std::to_string(n) + (kind == ScaleKind::block ? " block" : " channel");
}

TEST_F(Qpn8CudaLinear, EveryLegalShapeAndRowCountIsTheFormula) {
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {{16, 32},   {32, 32},    {48, 64},    {320, 5120},
                                                               {512, 512}, {1024, 256}, {272, 4256}, {10240, 64}};
  for (int i = 0; i < 12; ++i) {
    shapes.emplace_back(16 * (1 + random_() % 100), 32 * (1 + random_() % 20));
  }
  for (const auto& [k, n] : shapes) {
    for (const ScaleKind kind : {ScaleKind::channel, ScaleKind::block}) {
      const DeviceWeight w = weight(n, k, kind);
      expect_rows(w, name(k, n, kind));
    }
  }
}

TEST_F(Qpn8CudaLinear, ScaleBlocksOfEveryEdgeAreApplied) {
  for (const std::int64_t block_k : {32, 64, 128}) {
    for (const std::int64_t block_n : {16, 32, 64, 128}) {
      // As packing cuts them where a shard or a fused part begins within a block.
      PackedWeight packed = test::random_packed(160, 672, ScaleKind::block, random_, team_);
      packed.block_n = block_n;
      packed.block_k = block_k;
      packed.scales = test::uniform_scales((160 + block_n - 1) / block_n * ((672 + block_k - 1) / block_k), random_);
      const DeviceWeight w(packed, team_);
      expect_rows(w, "blocks of " + std::to_string(block_n) + " x " + std::to_string(block_k));
    }
  }
}

TEST_F(Qpn8CudaLinear, EveryCompiledKernelIsTheFormula) {
  const cuda::DeviceLimits device = cuda::linear_limits();
  if (device.compute_capability < 90) GTEST_SKIP() << "this code has the general kernels alone";
  const auto check_form = [&](const FixedForm& form, bool resident, int split) {
    if (form.unit_tiles == 5 && split > 1) return;
    // Resident: a cluster has a unit or less. Streamed: two chunks a tile, units that are not full.
    const std::int64_t k = std::int64_t{32} * form.chunk_steps * form.warps * split * (resident ? 1 : 2);
    const std::int64_t tiles = resident ? 2 * form.unit_tiles + 2 : 3 * form.unit_tiles + 3;
    const ScheduleShape schedule = {.split = split,
                                    .clusters = resident ? 4 : 2,
                                    .warps = form.warps,
                                    .unit_tiles = form.unit_tiles,
                                    .chunk_steps = form.chunk_steps,
                                    .slots = resident ? form.unit_tiles : 2};
    const LinearShape shape = {.k = k, .n = (tiles + tiles % 2) * 16};
    for (const ScaleKind kind : {ScaleKind::channel, ScaleKind::block}) {
      const DeviceWeight w = weight(shape.n, k, kind);
      const Matrix<float> x = inputs(8, k);
      Matrix<double> expected(8, shape.n);
      multiply_reference(w.host, x.view(), expected.view());
      for (const int rows : {1, 5, 8}) {
        const std::string what = name(k, shape.n, kind) + " unit " + std::to_string(form.unit_tiles) + " chunk " +
                                 std::to_string(form.chunk_steps) + " split " + std::to_string(split) + " rows " +
                                 std::to_string(rows);
        ASSERT_TRUE(resident ? runs_resident(shape, schedule, rows, device)
                             : runs_streamed(shape, schedule, rows, device))
            << what;
        if (!schedule_refusal(shape, schedule, rows, device).empty()) continue;  // x of 8 rows beside two deep rings
        const Matrix<float> y = multiply(w, schedule, x, rows);
        EXPECT_LE(test::relative_l2(y.view(), expected.view().row_range(0, rows)), kTolerance) << what;
      }
    }
  };
  for (const FixedForm& form : cuda::kResidentForms) check_form(form, true, 1);
  for (const FixedForm& form : cuda::kStreamedForms) check_form(form, false, 1);
  // However k is split, the end is one code: few forms stand for all.
  for (const int split : {2, 4, 8}) {
    check_form({2, 2}, true, split);
    check_form({4, 4}, true, split);
    check_form({2, 6}, false, split);
  }
}

TEST_F(Qpn8CudaLinear, TheSameCallGivesTheSameBits) {
  const DeviceWeight w = weight(1536, 4096, ScaleKind::block);
  const Matrix<float> x = inputs(8, 4096);
  const auto first = test::bits(multiply(w, x, 8).view());
  for (int i = 0; i < 20; ++i) ASSERT_EQ(test::bits(multiply(w, x, 8).view()), first) << i;
}

TEST_F(Qpn8CudaLinear, GroupsAreProductsOfTheirOwn) {
  constexpr std::int64_t kGroups = 2;
  for (const auto& [k, n] : {std::pair<std::int64_t, std::int64_t>(4096, 128), {96, 64}}) {
    for (const ScaleKind kind : {ScaleKind::channel, ScaleKind::block}) {
      const DeviceWeight w = weight(kGroups * n, k, kind);
      const Matrix<float> x = inputs(8, kGroups * k);
      for (const std::int64_t rows : {1, 8}) {
        const Matrix<float> y =
            product(x, rows, kGroups * n, [&](const cuda::ProductInput& in, const cuda::ProductOutput& out) {
              cuda::qpn8_linear_grouped(w.layout, kGroups, in, out, stream_);
            });
        for (std::int64_t g = 0; g < kGroups; ++g) {
          Matrix<double> expected(rows, kGroups * n);  // every channel of the stack; the group's are looked at
          multiply_reference(w.host, x.view().row_range(0, rows).col_range(g * k, k), expected.view());
          Matrix<double> own(rows, n);
          for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < n; ++j) own(i, j) = expected(i, g * n + j);
          }
          EXPECT_LE(test::relative_l2(y.view().col_range(g * n, n), own.view()), kTolerance)
              << name(k, n, kind) << " group " << g << " rows " << rows;
        }
      }
    }
  }
}

TEST_F(Qpn8CudaLinear, BiasPaddingAndHalfResults) {
  const DeviceWeight w = weight(384, 640, ScaleKind::channel);
  constexpr std::int64_t kColumns = 336;
  const Matrix<float> x = inputs(3, 640);
  const std::vector<float> bias = test::uniform_scales(kColumns, random_);
  DeviceArray<float> device_bias{std::span<const float>(bias)};
  const Matrix<float> y = product(x, 3, kColumns, [&](const cuda::ProductInput& in, const cuda::ProductOutput& out) {
    cuda::qpn8_linear(w.layout, in, device_bias.data(), out, stream_);
  });
  Matrix<double> expected(3, 384);
  multiply_reference(w.host, x.view(), expected.view());
  DeviceArray<Half> in{std::span<const Half>(halves(x))};
  DeviceArray<Half> out(3 * kColumns);
  cuda::qpn8_linear(w.layout, {.data = reinterpret_cast<const __half*>(in.data()), .stride = 640, .rows = 3},
                    device_bias.data(), {.data = out.data(), .dtype = DType::f16, .n = kColumns, .stride = kColumns},
                    stream_);
  const std::vector<Half> rounded = out.get();
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < kColumns; ++j) {
      EXPECT_NEAR(y(i, j), expected(i, j) + bias[static_cast<std::size_t>(j)], 1e-3) << i << " " << j;
      EXPECT_EQ(rounded[static_cast<std::size_t>(i * kColumns + j)], to_half(y(i, j))) << i << " " << j;
    }
  }
}

TEST_F(Qpn8CudaLinear, NumbersThatAreNotFiniteStayInTheirRow) {
  const DeviceWeight w = weight(64, 512, ScaleKind::channel);
  Matrix<float> x = inputs(8, 512);
  const Matrix<float> clean = multiply(w, x, 8);
  x(3, 100) = std::nanf("");
  const Matrix<float> y = multiply(w, x, 8);
  for (std::int64_t row = 0; row < 8; ++row) {
    if (row == 3) continue;
    EXPECT_EQ(test::bits(y.view().row_range(row, 1)), test::bits(clean.view().row_range(row, 1))) << row;
  }
}

TEST_F(Qpn8CudaLinear, ChainedProductsInAGraphFollowChangedInput) {
  // Each product reads what the one before wrote, and loads its codes before that one has ended.
  constexpr std::int64_t kWidth = 1024;
  constexpr int kChain = 6;
  std::vector<std::unique_ptr<DeviceWeight>> weights;
  for (int i = 0; i < kChain; ++i) {
    PackedWeight packed =
        test::random_packed(kWidth, kWidth, i % 2 == 0 ? ScaleKind::channel : ScaleKind::block, random_, team_);
    for (float& scale : packed.scales) scale *= 0.04F;  // so that the chain neither grows nor dies
    weights.push_back(std::make_unique<DeviceWeight>(packed, team_));
  }
  for (const int rows : {1, 8}) {
    const auto count = static_cast<std::size_t>(rows * kWidth);
    DeviceArray<Half> a(count);
    DeviceArray<Half> b(count);
    const auto step = [&](int i) {
      DeviceArray<Half>& from = i % 2 == 0 ? a : b;
      DeviceArray<Half>& to = i % 2 == 0 ? b : a;
      cuda::qpn8_linear(weights[static_cast<std::size_t>(i)]->layout,
                        {.data = reinterpret_cast<const __half*>(from.data()), .stride = kWidth, .rows = rows}, nullptr,
                        {.data = to.data(), .dtype = DType::f16, .n = kWidth, .stride = kWidth}, stream_);
    };
    const cudaGraphExec_t graph = record([&] {
      for (int i = 0; i < kChain; ++i) step(i);
    });
    for (int replay = 0; replay < 10; ++replay) {
      const std::vector<Half> x = halves(inputs(rows, kWidth));
      a.set(x);
      for (int i = 0; i < kChain; ++i) {
        step(i);
        cuda::check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
      }
      const std::vector<Half> apart = a.get();
      a.set(x);
      cuda::check_cuda(cudaGraphLaunch(graph, stream_), "cudaGraphLaunch");
      EXPECT_EQ(a.get(), apart) << "rows " << rows << " replay " << replay;
    }
    cudaGraphExecDestroy(graph);
  }
}

TEST_F(Qpn8CudaLinear, AnIllegalScheduleIsRefusedBeforeAnythingRuns) {
  const DeviceWeight w = weight(64, 512, ScaleKind::channel);
  const ScheduleShape schedule = {.split = 1, .clusters = 4, .unit_tiles = 3, .chunk_steps = 2, .slots = 4};
  const Matrix<float> x = inputs(1, 512);
  EXPECT_THROW(multiply(w, schedule, x, 1), Error);
}

}  // namespace
}  // namespace qpn8
