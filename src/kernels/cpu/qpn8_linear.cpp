#include "kernels/cpu/qpn8_linear.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "base/check.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/qpn8_linear.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h.
#include "hwy/highway.h"
#include "kernels/cpu/qpn8_decode-inl.hpp"
#include "kernels/cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace qpn8::cpu::HWY_NAMESPACE {
namespace {

/// One product of at most as many rows as share a decode, as the kernels see it.
struct PackedJob {
  const std::uint8_t* codes;
  const std::uint8_t* small_codes;
  const float* scales;
  bool block_scales;
  std::int64_t block_n;
  std::int64_t block_k;
  std::int64_t k;
  Schedule schedule;
  const float* x;  ///< its rows interleaved: x[k * rows + row]
  MatrixView<float> y;
};

constexpr std::int64_t kQuadBytes = 4 * kTileColumns;
constexpr std::int64_t kQuads = kKGroup / 4;
constexpr std::int64_t kGroupBytes = kQuads * kQuadBytes;
constexpr std::int64_t kLanes = hn::MaxLanes(FloatTag());
constexpr int kTileVectors = static_cast<int>(kTileColumns / kLanes);

// How far ahead codes are asked for, in groups of one tile. Into the first-level cache as far as a core can wait for
// lines at once; into the second level long before, which hides what memory takes to answer while others use it too.
constexpr int kFirstLevel = 3;  // as __builtin_prefetch() counts them
constexpr int kSecondLevel = 2;
constexpr std::int64_t kGroupsToFirstLevel = 4;
constexpr std::int64_t kGroupsToSecondLevel = 24;

/// A strip: kVectors vectors of channels walked side by side over k, so that enough loads and independent sums are in
/// flight. It spans several tiles or a part of one; its width never touches the order of a sum.
template <int kRows, int kChains, int kVectors>
class Strip {
  static constexpr int kTiles = std::max(1, kVectors / kTileVectors);
  // Two vectors at a time share each broadcast of x without running out of registers.
  static constexpr int kPair = std::min(2, kVectors);

 public:
  /// The strip that starts at vector `first` of the whole weight.
  Strip(const PackedJob& job, std::int64_t first) : job_(job), first_channel_(first * kLanes) {
    const std::int64_t tile = first / kTileVectors;
    for (int t = 0; t < kTiles; ++t) {
      codes_[t] = job.codes + (tile + t) * kTileColumns * job.k + first % kTileVectors * kLanes * 4;
      small_[t] = job.small_codes + (tile + t) * (job.k / kKGroup);
    }
    const std::int64_t next = first + kVectors;
    to_next_strip_ = (next / kTileVectors - tile - 1) * kTileColumns * job.k +
                     (next % kTileVectors - first % kTileVectors) * kLanes * 4;
  }

  void run() {
    const FloatTag f;
    FloatVec totals[kRows][kVectors];
    for (auto& row : totals) {
      for (FloatVec& total : row) total = hn::Zero(f);
    }
    const std::int64_t groups = job_.k / kKGroup;
    const std::int64_t part_groups = groups / job_.schedule.split_k;
    const std::int64_t block_groups = job_.block_k / kKGroup;
    if (job_.schedule.prefetch) prefetch_next_strip();
    for (std::int64_t part = 0; part < groups; part += part_groups) {
      const std::int64_t part_end = part + part_groups;
      for (std::int64_t begin = part; begin < part_end;) {
        // A block's scale must be applied before the next block's sum begins.
        const std::int64_t block_end = (begin / block_groups + 1) * block_groups;
        const std::int64_t end = job_.block_scales ? std::min(part_end, block_end) : part_end;
        add_segment(begin, end, totals);
        begin = end;
      }
    }
    store(totals);
  }

 private:
  using Sums = FloatVec[kRows][kVectors][kChains];

  /// totals += the sum over the groups [begin, end), times its block's scale.
  HWY_INLINE void add_segment(std::int64_t begin, std::int64_t end, FloatVec (&totals)[kRows][kVectors]) {
    const FloatTag f;
    Sums sums;
    for (auto& row : sums) {
      for (auto& chains : row) {
        for (FloatVec& sum : chains) sum = hn::Zero(f);
      }
    }
    add_groups(begin, end, sums);
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        FloatVec sum = sums[r][v][0];
        if constexpr (kChains == 2) sum = hn::Add(sum, sums[r][v][1]);
        if constexpr (kChains == 4) {
          sum = hn::Add(hn::Add(sum, sums[r][v][1]), hn::Add(sums[r][v][2], sums[r][v][3]));
        }
        if (job_.block_scales) sum = hn::Mul(sum, hn::Set(f, block_scale(v, begin)));
        totals[r][v] = hn::Add(totals[r][v], sum);
      }
    }
  }

  /// The pointers move on by constants, and everything in a quad lies at a constant distance from them: with eight rows
  /// of x to address, sums and addresses would otherwise not fit the registers.
  HWY_INLINE void add_groups(std::int64_t begin, std::int64_t end, Sums& sums) {
    const float* x = job_.x + begin * kKGroup * kRows;
    std::int64_t offset = begin * kGroupBytes;
    for (std::int64_t group = begin; group < end; ++group) {
      std::uint32_t small = 0;
      for (int t = 0; t < kTiles; ++t) small |= small_[t][group];
      if (job_.schedule.prefetch) {
        prefetch_group<kFirstLevel>(group + kGroupsToFirstLevel);
        prefetch_group<kSecondLevel>(group + kGroupsToSecondLevel);
      }
      for (std::int64_t quad = 0; quad < kQuads; ++quad) {
        add_quad(offset, x, (small & 1U) != 0, sums);
        small >>= 1;
        offset += kQuadBytes;
        x += std::int64_t{4} * kRows;
      }
    }
  }

  /// Asks for what this strip reads of a group; past the last one, of the strip after it.
  template <int kLevel>
  HWY_INLINE void prefetch_group(std::int64_t group) const {
    constexpr std::int64_t kLine = 64;
    constexpr std::int64_t kBytes = std::min(kVectors, kTileVectors) * kLanes * 4;
    const std::int64_t offset = group * kGroupBytes + (group * kKGroup < job_.k ? 0 : to_next_strip_);
    for (int t = 0; t < kTiles; ++t) {
      for (std::int64_t quad = 0; quad < kQuads; ++quad) {
        for (std::int64_t line = 0; line < kBytes; line += kLine) {
          __builtin_prefetch(codes_[t] + offset + quad * kQuadBytes + line, 0, kLevel);
        }
      }
    }
  }

  /// What the strip after this one reads besides codes: few bytes, but it would wait for each of them at its beginning.
  HWY_INLINE void prefetch_next_strip() const {
    constexpr std::int64_t kLine = 64;
    const std::int64_t groups = job_.k / kKGroup;
    for (int t = 0; t < kTiles; ++t) {
      for (std::int64_t byte = 0; byte < groups; byte += kLine) {
        __builtin_prefetch(small_[t] + kTiles * groups + byte, 0, kFirstLevel);
      }
    }
    if (job_.block_scales) return;
    for (int v = 0; v < kVectors; ++v) {
      __builtin_prefetch(job_.scales + first_channel_ + (kVectors + v) * kLanes, 0, kFirstLevel);
    }
  }

  HWY_INLINE LaneVec load_codes(int vector, std::int64_t offset) const {
    const std::uint8_t* from = codes_[vector / kTileVectors] + offset + vector % kTileVectors * kLanes * 4;
    return hn::LoadU(LaneTag(), reinterpret_cast<const std::uint32_t*>(from));
  }

  /// sums += the quad's four interleaved inputs * the codes at `offset`: one product after the other in the order of k,
  /// chain k % kChains.
  HWY_INLINE void add_quad(std::int64_t offset, const float* HWY_RESTRICT x, bool small, Sums& sums) {
    const FloatTag f;
    for (int pair = 0; pair < kVectors; pair += kPair) {
      FloatVec values[kPair][4];
      LaneVec codes[kPair];
      for (int v = 0; v < kPair; ++v) codes[v] = load_codes(pair + v, offset);
      // Only the decode is there twice, not the products: they are most of the code, and of the time to compile it.
      if (HWY_LIKELY(!small)) {
        for (int v = 0; v < kPair; ++v) decode_quad<Codes::normal>(codes[v], values[v]);
      } else {
        for (int v = 0; v < kPair; ++v) decode_quad<Codes::any>(codes[v], values[v]);
      }
      for (int j = 0; j < 4; ++j) {
        for (int r = 0; r < kRows; ++r) {
          const FloatVec factor = hn::Set(f, x[j * kRows + r]);
          for (int v = 0; v < kPair; ++v) {
            FloatVec& sum = sums[r][pair + v][j % kChains];
            sum = hn::MulAdd(values[v][j], factor, sum);
          }
        }
      }
    }
  }

  float block_scale(int v, std::int64_t group) const {
    // A vector of channels lies within one block, whose edge is at least 16.
    static_assert(kLanes <= 16);
    const std::int64_t blocks = (job_.k + job_.block_k - 1) / job_.block_k;
    const std::int64_t channel = first_channel_ + v * kLanes;
    return job_.scales[channel / job_.block_n * blocks + group * kKGroup / job_.block_k];
  }

  void store(const FloatVec (&totals)[kRows][kVectors]) const {
    const FloatTag f;
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t channel = first_channel_ + v * kLanes;
      const FloatVec scale = job_.block_scales ? hn::Set(f, 1.0F) : hn::LoadU(f, job_.scales + channel);
      for (int r = 0; r < kRows; ++r) {
        // The 2^8 that the decode leaves out first: it is exact, and 256 * scale might not be finite.
        const FloatVec value = hn::Mul(hn::Mul(totals[r][v], hn::Set(f, 256.0F)), scale);
        hn::StoreU(value, f, job_.y.data + r * job_.y.stride + channel);
      }
    }
  }

  const PackedJob& job_;
  std::int64_t first_channel_;
  const std::uint8_t* codes_[kTiles];
  std::int64_t to_next_strip_;  ///< from the end of a tile
  const std::uint8_t* small_[kTiles];
};

/// Sums that fit the registers (32 or 16) beside the decoded codes. Plain C++ gains nothing from more than two, and
/// every operation of its vectors is a loop: wide strips of it took two thirds of the time to compile this file.
constexpr int most_sums() {
  if (HWY_TARGET == HWY_BASELINE_SCALAR) return 2;
  return HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 16 : 8;
}

/// Vectors of the widest strip whose sums do.
constexpr int strip_vectors(int rows, int chains) {
  int vectors = std::min(8, std::max(1, most_sums() / (rows * chains)));
  while ((vectors & (vectors - 1)) != 0) --vectors;
  return vectors;
}

template <int kRows, int kChains>
void run_strips(const PackedJob& job, std::int64_t begin, std::int64_t end) {
  constexpr int kWide = strip_vectors(kRows, kChains);
  constexpr int kNarrow = std::min(kWide, kTileVectors);
  std::int64_t vector = begin * kTileVectors;
  const std::int64_t last = end * kTileVectors;
  for (; vector + kWide <= last; vector += kWide) Strip<kRows, kChains, kWide>(job, vector).run();
  for (; vector < last; vector += kNarrow) Strip<kRows, kChains, kNarrow>(job, vector).run();
}

using TilesKernel = void (*)(const PackedJob&, std::int64_t, std::int64_t);

/// Most rows that share a decode: more would spill their sums.
constexpr int rows_at_once(int chains) { return std::clamp(most_sums() / chains, 1, kMaxPackedRows); }

template <int kChains, int... kRows>
void run_chains(const PackedJob& job, std::int64_t begin, std::int64_t end, std::integer_sequence<int, kRows...>) {
  static constexpr std::array<TilesKernel, sizeof...(kRows)> kByRows = {&run_strips<kRows + 1, kChains>...};
  constexpr auto kMostRows = static_cast<std::int64_t>(kByRows.size());
  for (std::int64_t first = 0; first < job.y.rows; first += kMostRows) {
    PackedJob part = job;
    const std::int64_t rows = std::min(kMostRows, job.y.rows - first);
    part.x = job.x + first * job.k;
    part.y = job.y.row_range(first, rows);
    kByRows[static_cast<std::size_t>(rows - 1)](part, begin, end);
  }
}

template <int kChains>
void run_chains(const PackedJob& job, std::int64_t begin, std::int64_t end) {
  run_chains<kChains>(job, begin, end, std::make_integer_sequence<int, rows_at_once(kChains)>());
}

}  // namespace

/// Interleaves the inputs [begin, end) of the rows of x that share a decode: pass after pass, each [k, rows].
void interleave_rows(const Schedule& schedule, MatrixView<const float> x, float* out, std::int64_t begin,
                     std::int64_t end) {
  const std::int64_t most = rows_at_once(schedule.accumulator_chains);
  for (std::int64_t first = 0; first < x.rows; first += most) {
    const std::int64_t rows = std::min(most, x.rows - first);
    transpose(x.data + first * x.stride + begin, x.stride, rows, end - begin, out + first * x.cols + begin * rows,
              rows);
  }
}

/// The tiles [begin, end) of a product; x as interleave_rows() leaves it.
void run_tiles(const PackedWeight& weight, const Schedule& schedule, const float* x, MatrixView<float> y,
               std::int64_t begin, std::int64_t end) {
  const PackedJob job{weight.code_bytes().data(),
                      weight.small_codes.data(),
                      weight.scales.data(),
                      weight.scale_kind == ScaleKind::block,
                      weight.block_n,
                      weight.block_k,
                      weight.k,
                      schedule,
                      x,
                      y};
  switch (schedule.accumulator_chains) {
    case 1:
      return run_chains<1>(job, begin, end);
    case 2:
      return run_chains<2>(job, begin, end);
    default:
      return run_chains<4>(job, begin, end);
  }
}

}  // namespace qpn8::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qpn8::cpu {
namespace {
HWY_EXPORT(interleave_rows);
HWY_EXPORT(run_tiles);

// Inputs that a thread interleaves at least: some microseconds of work, as much as handing it over costs.
constexpr std::int64_t kInputsAtLeast = 1024;

}  // namespace

PackedProduct::PackedProduct(const PackedWeight& weight, const Schedule& schedule, MatrixView<const float> x,
                             MatrixView<float> y, Workspace& workspace, ThreadTeam& team)
    : weight_(weight), schedule_(schedule), rows_(x.data), y_(y) {
  check(x.rows >= 1 && x.rows <= kMaxPackedRows, "qpn8_linear: 1 to 8 rows");
  if (x.rows == 1) return;
  const std::span<std::byte> scratch = workspace.claim(static_cast<std::size_t>(x.rows * x.cols) * sizeof(float));
  auto* interleaved = reinterpret_cast<float*>(scratch.data());
  team.for_ranges(x.cols, kInputsAtLeast, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(interleave_rows)(schedule, x, interleaved, begin, end);
  });
  rows_ = interleaved;
}

std::int64_t PackedProduct::tiles() const { return weight_.n / kTileColumns; }

void PackedProduct::run(std::int64_t begin, std::int64_t end) const {
  HWY_DYNAMIC_DISPATCH(run_tiles)(weight_, schedule_, rows_, y_, begin, end);
}

void qpn8_linear(const PackedWeight& weight, const Schedule& schedule, MatrixView<const float> x, MatrixView<float> y,
                 Workspace& workspace, ThreadTeam& team) {
  const PackedProduct product(weight, schedule, x, y, workspace, team);
  team.for_shared_ranges(product.tiles(), PackedProduct::kTilesAtOnce,
                         [&](std::int64_t begin, std::int64_t end) { product.run(begin, end); });
}

}  // namespace qpn8::cpu
#endif  // HWY_ONCE
