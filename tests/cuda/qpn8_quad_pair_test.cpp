#include "kernels/cuda/qpn8_quad_pair.hpp"

#include <gmock/gmock.h>

#include <array>

#include "cuda/device_array.hpp"
#include "kernels/kernel_cases.hpp"
#include "qpn8/contract.hpp"
#include "qpn8/error.hpp"
#include "qpn8/linear.hpp"

namespace qpn8 {
namespace {

using cuda::DenseRider;
using cuda::OutputSegment;
using cuda::QuadPairInput;
using cuda::QuadPairWeight;
using test::DeviceArray;

constexpr double kHalfTolerance = 6e-4;  // results are rounded to FP16

struct DeviceQuads {
  DeviceQuads(const PackedWeight& packed, std::int64_t products, ThreadTeam& team)
      : host(packed), codes(laid_out(packed, team)), scales(std::span<const float>(packed.scales)) {
    weight = {.n = packed.n / products,
              .k = packed.k,
              .products = products,
              .scale_kind = packed.scale_kind,
              .block_n = packed.block_n,
              .block_k = packed.block_k,
              .codes = codes.data(),
              .scales = scales.data()};
  }

  static std::vector<std::uint8_t> laid_out(const PackedWeight& packed, ThreadTeam& team) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(packed.n * packed.k));
    cuda::lay_out_quad_pairs(packed, bytes, team);
    return bytes;
  }

  PackedWeight host;
  DeviceArray<std::uint8_t> codes;
  DeviceArray<float> scales;
  QuadPairWeight weight;
};

std::vector<Half> halves(const Matrix<float>& x) {
  std::vector<Half> result;
  for (const float value : x.values()) result.push_back(to_half(value));
  return result;
}

__half* raw(DeviceArray<Half>& array) { return reinterpret_cast<__half*>(array.data()); }

class QuadPair : public test::KernelTest {
 protected:
  Matrix<float> inputs(std::int64_t rows, std::int64_t cols) {
    Matrix<float> x = test::gaussian(rows, cols, random_);
    for (float& value : x.values()) value = to_float(to_half(value));
    return x;
  }

  DeviceQuads quads(std::int64_t n, std::int64_t k, ScaleKind kind, std::int64_t products = 1) {
    return {test::random_packed(n, k, kind, random_, team_), products, team_};
  }

  Matrix<float> multiply(const DeviceQuads& w, const Schedule& schedule, const Matrix<float>& x, int rows) {
    DeviceArray<Half> in{std::span<const Half>(halves(x))};
    DeviceArray<Half> out(static_cast<std::size_t>(rows * w.host.n));
    const OutputSegment segment = {.data = raw(out), .n = w.host.n, .stride = w.host.n};
    cuda::qpn8_quad_pair(w.weight, schedule, {.data = raw(in), .stride = x.cols(), .rows = rows}, DenseRider(),
                         std::span(&segment, 1), stream_);
    return floats(out, rows, w.host.n);
  }

  static Matrix<float> floats(const DeviceArray<Half>& array, std::int64_t rows, std::int64_t cols) {
    Matrix<float> values(rows, cols);
    const std::vector<Half> stored = array.get();
    for (std::size_t i = 0; i < stored.size(); ++i) values.values()[i] = to_float(stored[i]);
    return values;
  }

  void expect_product(const DeviceQuads& w, const Schedule& schedule, const std::string& what) {
    const Matrix<float> x = inputs(8, w.host.k);
    Matrix<double> expected(8, w.host.n);
    multiply_reference(w.host, x.view(), expected.view());
    const Matrix<float> eight = multiply(w, schedule, x, 8);
    for (int rows = 1; rows <= 8; ++rows) {
      const Matrix<float> y = multiply(w, schedule, x, rows);
      EXPECT_LE(test::relative_l2(y.view(), expected.view().row_range(0, rows)), kHalfTolerance) << what << " " << rows;
      EXPECT_EQ(test::bits(y.view()), test::bits(eight.view().row_range(0, rows))) << what << " rows " << rows;
    }
  }

  std::mt19937 random_{17};
  ThreadTeam team_{2};
};

TEST_F(QuadPair, EveryScheduleOfTheSm70ContractsIsTheFormula) {
  int rows_checked = 0;
  for (const Contract& contract : shipped_contracts()) {
    if (!contract.name.starts_with("sm70")) continue;
    const ScaleKind kind = contract.scales.front();
    for (const AdmittedRow& row : contract.rows) {
      // All of k, some of the channels: a block is a tile of 32, and what differs between tiles is their address.
      const DeviceQuads w = quads(96, *row.k, kind);
      expect_product(w, row.schedule, row.role + " " + to_string(row.schedule));
      ++rows_checked;
    }
  }
  EXPECT_EQ(rows_checked, 11);
}

TEST_F(QuadPair, EveryKernelIsTheFormula) {
  for (const ScaleKind kind : {ScaleKind::channel, ScaleKind::block}) {
    const DeviceQuads w = quads(64, 16 * 30, kind);
    for (const int chains : {1, 2, 4}) {
      for (const bool prefetch : {false, true}) {
        for (const int split : {1, 5, 30}) {
          const Schedule schedule = {split, chains, prefetch};
          expect_product(w, schedule, to_string(schedule));
        }
      }
    }
  }
}

TEST_F(QuadPair, EveryFiniteCodeIsDecodedExactly) {
  constexpr std::int64_t kInputs = 256;
  Matrix<std::uint8_t> codes(32, kInputs);
  for (std::int64_t n = 0; n < 32; ++n) {
    for (std::int64_t k = 0; k < kInputs; ++k) {
      const auto code = static_cast<std::uint8_t>(k + n);
      codes(n, k) = is_nan_code(code) ? std::uint8_t{0x40} : code;
    }
  }
  const DeviceQuads w(pack_codes(codes.view(), std::vector<float>(32, 1.0F), team_), 1, team_);
  for (std::int64_t first = 0; first < kInputs; first += 8) {
    Matrix<float> x(8, kInputs);
    for (std::int64_t row = 0; row < 8; ++row) x(row, first + row) = 1.0F;
    const Matrix<float> y = multiply(w, Schedule{4, 2, false}, x, 8);
    for (std::int64_t row = 0; row < 8; ++row) {
      for (std::int64_t n = 0; n < 32; ++n) ASSERT_EQ(y(row, n), decode_e4m3(codes(n, first + row)));
    }
  }
}

TEST_F(QuadPair, ProductsOfOneLaunchAreTheirOwn) {
  constexpr std::int64_t kProducts = 2;
  for (const ScaleKind kind : {ScaleKind::channel, ScaleKind::block}) {
    const DeviceQuads w = quads(kProducts * 128, 512, kind, kProducts);
    const Matrix<float> x = inputs(8, kProducts * 512);
    const Matrix<float> y = multiply(w, Schedule{32, 2, false}, x, 8);
    for (std::int64_t g = 0; g < kProducts; ++g) {
      Matrix<double> all(8, kProducts * 128);
      multiply_reference(w.host, x.view().col_range(g * 512, 512), all.view());
      Matrix<double> own(8, 128);
      for (std::int64_t i = 0; i < 8; ++i) {
        for (std::int64_t j = 0; j < 128; ++j) own(i, j) = all(i, g * 128 + j);
      }
      EXPECT_LE(test::relative_l2(y.view().col_range(g * 128, 128), own.view()), kHalfTolerance) << g;
    }
  }
}

TEST_F(QuadPair, TheFusedGateAndUpKeepsBothInFp32) {
  for (const ScaleKind kind : {ScaleKind::channel, ScaleKind::block}) {
    PackedWeight packed = test::random_packed(2 * 96, 512, kind, random_, team_);
    for (float& scale : packed.scales) scale *= 0.1F;  // gates near 1, where SiLU bends
    const DeviceQuads w(packed, 1, team_);
    const Matrix<float> x = inputs(8, 512);
    Matrix<double> both(8, 192);
    multiply_reference(w.host, x.view(), both.view());
    Matrix<double> expected(8, 96);
    for (std::int64_t i = 0; i < 8; ++i) {
      for (std::int64_t j = 0; j < 96; ++j) {
        const double gate = both(i, j);
        expected(i, j) = gate / (1 + std::exp(-gate)) * both(i, 96 + j);
      }
    }
    DeviceArray<Half> in{std::span<const Half>(halves(x))};
    for (const Schedule& schedule : {Schedule{8, 1, false}, Schedule{16, 2, true}, Schedule{4, 4, false}}) {
      DeviceArray<Half> out(8 * 96);
      cuda::qpn8_quad_pair_gate_up(w.weight, schedule, {.data = raw(in), .stride = 512, .rows = 8},
                                   {.data = raw(out), .n = 96, .stride = 96}, stream_);
      EXPECT_LE(test::relative_l2(floats(out, 8, 96).view(), expected.view()), kHalfTolerance) << to_string(schedule);
    }
  }
}

TEST_F(QuadPair, TheRiderAndTheSplitOutputsNeedNoCopy) {
  // q | k | v, z, b, a of a gated delta-net layer: the first two packed, the last two from an FP16 weight.
  constexpr std::array<std::int64_t, 4> kWidths = {96, 32, 12, 12};
  constexpr std::int64_t kInputs = 640;
  const DeviceQuads w = quads(128, kInputs, ScaleKind::channel);
  const Matrix<float> rider = inputs(24, kInputs);
  const Matrix<float> x = inputs(8, kInputs);
  DeviceArray<Half> device_rider{std::span<const Half>(halves(rider))};
  DeviceArray<Half> in{std::span<const Half>(halves(x))};
  Matrix<double> expected(8, 152);
  Matrix<double> packed(8, 128);
  multiply_reference(w.host, x.view(), packed.view());
  for (std::int64_t i = 0; i < 8; ++i) {
    for (std::int64_t j = 0; j < 128; ++j) expected(i, j) = packed(i, j);
    for (std::int64_t j = 0; j < 24; ++j) {
      for (std::int64_t k = 0; k < kInputs; ++k) expected(i, 128 + j) += static_cast<double>(x(i, k)) * rider(j, k);
    }
  }
  for (const int rows : {1, 8}) {
    std::vector<std::unique_ptr<DeviceArray<Half>>> outs;
    std::vector<OutputSegment> segments;
    for (const std::int64_t width : kWidths) {
      outs.push_back(std::make_unique<DeviceArray<Half>>(static_cast<std::size_t>(rows * width)));
      segments.push_back({.data = raw(*outs.back()), .n = width, .stride = width});
    }
    cuda::qpn8_quad_pair(w.weight, Schedule{8, 1, false}, {.data = raw(in), .stride = kInputs, .rows = rows},
                         {.weight = raw(device_rider), .n = 24}, segments, stream_);
    std::int64_t first = 0;
    for (std::size_t s = 0; s < kWidths.size(); ++s) {
      const Matrix<float> y = floats(*outs[s], rows, kWidths[s]);
      Matrix<double> part(rows, kWidths[s]);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < kWidths[s]; ++j) part(i, j) = expected(i, first + j);
      }
      EXPECT_LE(test::relative_l2(y.view(), part.view()), kHalfTolerance) << "segment " << s << " rows " << rows;
      first += kWidths[s];
    }
  }
}

TEST(QuadPairRefusal, NamesWhatIsIllegal) {
  const QuadPairWeight weight = {.n = 64, .k = 1024};
  const Schedule schedule = {8, 2, false};
  EXPECT_EQ(cuda::quad_pair_refusal(weight, schedule, 8), "");
  EXPECT_THAT(cuda::quad_pair_refusal(weight, schedule, 9), testing::HasSubstr("9 rows"));
  EXPECT_THAT(cuda::quad_pair_refusal(weight, {64, 2, false}, 1), testing::HasSubstr("split_k is at most 32"));
  EXPECT_THAT(cuda::quad_pair_refusal(weight, {5, 2, false}, 1), testing::HasSubstr("split_k must divide"));
  EXPECT_THAT(cuda::quad_pair_refusal({.n = 40, .k = 1024}, schedule, 1), testing::HasSubstr("N=40"));
  const QuadPairWeight stacked = {.n = 64, .k = 1024, .products = 2, .scale_kind = ScaleKind::block};
  EXPECT_THAT(cuda::quad_pair_refusal(stacked, schedule, 1), testing::HasSubstr("multiple of 128"));
}

}  // namespace
}  // namespace qpn8
