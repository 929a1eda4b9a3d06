#include "kernels/cpu/latent_attention.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/row_cases.hpp"
#include "support/isas.hpp"
#include "support/numbers.hpp"

namespace qpn8::cpu {
namespace {

using test::for_each_isa;
using test::gaussian;
using test::relative_l2;
using test::same_bits;

constexpr std::int64_t kHeads = 5;
constexpr std::int64_t kRing = 24;
constexpr LatentRule kRule = {.heads = kHeads, .window = 9, .ratio = 4, .scale = 0.4F};

enum class Kind { window, all_entries, chosen_entries };

/// Two sequences with everything stored, and rows of both.
struct Case {
  Case(DType dtype, std::int64_t width, Kind kind)
      : window(dtype, 2, kRing, width),
        entries(dtype, 2, 12, width),
        q(gaussian(21, kHeads * width, 1)),
        sinks(gaussian(1, kHeads, 2)),
        chosen(21, 3),
        kind_(kind) {
    const Matrix<float> values = gaussian(2 * kRing, width, 3);
    for (std::int64_t i = 0; i < 2 * kRing; ++i) window.set(i / kRing, i % kRing, values, i);
    const Matrix<float> pooled = gaussian(24, width, 4);
    for (std::int64_t i = 0; i < 24; ++i) entries.set(i / 12, i % 12, pooled, i);
    places.add(1, 17, 15);
    places.add(0, 0, 6);
    for (std::int64_t t = 0; t < 21; ++t) {
      const std::int64_t seen = (places.positions[static_cast<std::size_t>(t)] + 1) / 4;
      for (std::int64_t j = 0; j < 3; ++j) {
        chosen(t, j) = j < seen && t % 3 >= j ? static_cast<std::int32_t>(seen > 3 ? 2 * j : j) : -1;
      }
    }
  }

  LatentSources sources() const {
    LatentSources all{.window = window.store(), .entries = {}, .chosen = {}, .sinks = sinks.view().row(0)};
    if (kind_ != Kind::window) all.entries = entries.store();
    if (kind_ == Kind::chosen_entries) all.chosen = chosen.view();
    return all;
  }

  Matrix<float> attend(int threads) const {
    Matrix<float> out(q.rows(), q.cols());
    LatentScratch scratch;
    ThreadTeam team(threads);
    latent_attention(q.view(), places.view(), sources(), kRule, scratch, out.view(), team);
    return out;
  }

  StoredRows window;
  StoredRows entries;
  Matrix<float> q;
  Matrix<float> sinks;
  Matrix<std::int32_t> chosen;
  Places places;

 private:
  Kind kind_;
};

TEST(LatentAttention, IsTheSoftmaxOverWindowEntriesAndSink) {
  for_each_isa([] {
    for (const Kind kind : {Kind::window, Kind::all_entries, Kind::chosen_entries}) {
      for (const DType dtype : {DType::f32, DType::f16}) {
        for (const std::int64_t width : {1, 30, 64, 130}) {
          const Case c(dtype, width, kind);
          Matrix<double> expected(c.q.rows(), c.q.cols());
          latent_attention_reference(c.q.view(), c.places.view(), c.sources(), kRule, expected.view());
          EXPECT_LE(relative_l2(c.attend(1).view(), expected.view()), 3e-6)
              << static_cast<int>(kind) << " " << to_string(dtype) << " " << width;
        }
      }
    }
  });
}

TEST(LatentAttention, BitsDoNotDependOnThreadsOrOnTheRowsBeside) {
  for_each_isa([] {
    const Case c(DType::f32, 48, Kind::chosen_entries);
    const Matrix<float> whole = c.attend(1);
    for (const int threads : {2, 3, 7}) {
      EXPECT_TRUE(same_bits<float>(c.attend(threads).view(), whole.view())) << threads;
    }
    LatentScratch scratch;
    ThreadTeam team(2);
    for (std::int64_t t = 0; t < c.q.rows(); ++t) {
      Places place;
      place.add(c.places.slots[static_cast<std::size_t>(t)], c.places.positions[static_cast<std::size_t>(t)], 1);
      LatentSources sources = c.sources();
      sources.chosen = sources.chosen.row_range(t, 1);
      Matrix<float> out(1, c.q.cols());
      latent_attention(c.q.view().row_range(t, 1), place.view(), sources, kRule, scratch, out.view(), team);
      EXPECT_TRUE(same_bits<float>(out.view(), whole.view().row_range(t, 1))) << t;
    }
  });
}

TEST(LatentAttention, LargeScoresAndSinksDoNotOverflow) {
  for_each_isa([] {
    Case c(DType::f32, 16, Kind::window);
    for (float& value : c.q.values()) value *= 1e4F;
    for (float& value : c.sinks.values()) value *= 1e4F;
    const auto out = c.attend(1);
    for (const float value : out.values()) EXPECT_TRUE(std::isfinite(value));
  });
}

}  // namespace
}  // namespace qpn8::cpu
