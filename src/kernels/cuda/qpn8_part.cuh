#pragma once

#include "kernels/cuda/qpn8_kernels.hpp"

namespace qpn8::cuda {

/// Where a block stands in its cluster, and which part of k and of the tiles a warp works on.
struct WarpPart {
  int warp;
  int lane;
  int rank;  ///< of the `split` blocks of the cluster: which
  int first_step;
  int steps;
  int group;
  int first_tile;  ///< counted over all groups
  int tiles;
};

__device__ inline int dealt_before(const Deal& deal, int part) { return deal.each * part + min(part, deal.rest); }

__device__ inline WarpPart warp_part(const LinearArgs& p) {
  WarpPart part;
  const ScheduleShape& schedule = p.schedule;
  part.warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  part.lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  // The split is a power of two.
  const int block = static_cast<int>(blockIdx.x);
  part.rank = block & (schedule.split - 1);
  const int cluster = block >> (31 - __clz(schedule.split));
  const int first_part = part.rank * schedule.warps;
  part.first_step = dealt_before(p.part_steps, first_part + part.warp);
  part.steps = dealt_before(p.part_steps, first_part + part.warp + 1) - part.first_step;
  part.group = p.groups == 1 ? 0 : cluster / p.group_clusters;
  const int in_group = cluster - part.group * p.group_clusters;
  if (part.group < p.groups && in_group < p.group_clusters) {
    // Spread evenly: neighbours are blocks of one cluster of multiprocessors, which share a way to the memory.
    const auto tiles = static_cast<unsigned>(p.tiles);
    const auto clusters = static_cast<unsigned>(p.group_clusters);
    const unsigned first = tiles * static_cast<unsigned>(in_group) / clusters;
    part.tiles = static_cast<int>(tiles * static_cast<unsigned>(in_group + 1) / clusters - first);
    part.first_tile = part.group * p.tiles + static_cast<int>(first);
  } else {
    part.group = 0;  // one of the clusters left over
    part.tiles = 0;
    part.first_tile = 0;
  }
  return part;
}

}  // namespace qpn8::cuda
