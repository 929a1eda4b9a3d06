#pragma once

#include "kernels/cuda/qpn8_output.cuh"
#include "kernels/cuda/qpn8_tile.cuh"

// y = x W^T for 1 to 16 rows of x and a packed E4M3 weight, sm_80 and later.
//
// A cluster of `split` blocks owns a range of tiles of 16 channels; its blocks and their warps share k. Each warp
// copies its own codes into its own ring, and starts before the kernel before has finished: weights depend on nothing.
// x is read after that. Sums are added in a fixed order - chains, then warp after warp - which depends on k, `split`
// and `warps` alone.

namespace qpn8::cuda {

// Two blocks a multiprocessor: while one computes, the next kernel's loads. A third slows the one that computes.
inline constexpr int kResidentBlocks = 2;

template <int kRows, int kUnitTiles, ScaleMode kScales, int kChunk, bool kResident, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarpLanes, kResidentBlocks) linear(const __grid_constant__ LinearArgs p) {
  using Product = TileProduct<kRows, kUnitTiles, kScales, kChunk, kResident>;
  // Forms with fixed chunks are for machines with bulk copies; before sm_90 they only exist to be named.
  if constexpr (kChunk == 0 || kBulkCopies) {
    extern __shared__ __align__(128) unsigned char shared[];
    constexpr bool kBlockScales = kScales != ScaleMode::channel;
    constexpr bool kNormalises = !kResident && kRows <= 8;
    let_next_kernel_start();
    const bool in_cluster = p.schedule.split > 1;
    const WarpPart part = warp_part(p);
    CodeRing ring(shared + p.shared.ring + part.warp * p.shared.ring_bytes,
                  reinterpret_cast<unsigned long long*>(shared) + part.warp * kMaxSlots, p.schedule,
                  p.codes + (static_cast<long>(part.first_tile) * p.steps + part.first_step) * kStepBytes,
                  static_cast<long>(p.steps) * kStepBytes, part.steps, part.tiles);
    UnitOutput<kRows, kUnitTiles, kWarps, !kResident> output(shared, p, part);
    if (in_cluster) {
      output.make_barriers();
      arrive_at_cluster();  // so that peers are known to be prepared before anything is sent to them
    }
    typename Product::Scales scales(p, part);
    int tile = part.first_tile;
    const int end = tile + part.tiles;
    const auto fetch_unit = [&] {
      output.fetch(p, kBlockScales, tile * kTileChannels, min(kUnitTiles, end - tile) * kTileChannels);
      if constexpr (kBlockScales) scales.fetch(p, tile, end);
    };
    if (tile < end) fetch_unit();
    typename Product::Input x(shared, p, part);
    Product product(p, part, x);
    if constexpr (kNormalises) {
      if (p.norm != nullptr) x.fetch_norm(p, part);
    }
    if (in_cluster) {
      wait_for_cluster();
      output.expect_first();
    }
    wait_for_previous_kernel();
    // A cluster without tiles stays until here: it keeps its place from a block of the kernel after the next.
    if (tile >= end) return;
    x.start(p, part);
    output.fetch_added(p);
    x.wait();
    if constexpr (kNormalises) {
      if (p.norm != nullptr) x.normalise(shared, p, part);
    }
    while (true) {
      typename Product::Sum sums[kUnitTiles];
      if constexpr (kResident && kRows > 1) {
        // All at once, so that the tiles' products may be interleaved.
#pragma unroll
        for (int t = 0; t < kUnitTiles; ++t) {
          if (t < part.tiles) ring.wait_resident(t);
        }
      }
#pragma unroll
      for (int t = 0; t < kUnitTiles; ++t) {
        if (tile + t < end) {
          if (kResident && kRows == 1) ring.wait_resident(t);
          sums[t] = product.run(ring, scales, t);
        }
      }
      __syncwarp();  // the sums may take the place of codes that other lanes were reading
#pragma unroll
      for (int t = 0; t < kUnitTiles; ++t) output.put(p, part, t, sums[t]);
      output.finish(p);
      tile += kUnitTiles;
      if (kResident || tile >= end) break;
      fetch_unit();
      output.fetch_added(p);
    }
  }
}

}  // namespace qpn8::cuda
