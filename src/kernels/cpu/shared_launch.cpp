#include "kernels/cpu/shared_launch.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/divide_up.hpp"
#include "kernels/cpu/gated_streams.hpp"
#include "kernels/cpu/qpn8_linear.hpp"

namespace qpn8::cpu {

void qpn8_linear_and_dense(const PackedWeight& weight, const Schedule& schedule, const DenseWeightView& small,
                           MatrixView<const float> x, MatrixView<float> y, MatrixView<float> y_small,
                           Workspace& workspace, ThreadTeam& team) {
  check(small.k == x.cols && y_small.cols == small.n && y_small.rows == x.rows, "both weights have one input");
  // Whole cache lines of y_small.
  constexpr std::int64_t kChannelsAtOnce = 64;
  const PackedProduct product(weight, schedule, x, y, workspace, team);
  const std::int64_t tile_tasks = divide_up(product.tiles(), PackedProduct::kTilesAtOnce);
  const std::int64_t tasks = tile_tasks + divide_up(small.n, kChannelsAtOnce);
  team.for_shared_ranges(tasks, 1, [&](std::int64_t task, std::int64_t /*end*/) {
    if (task < tile_tasks) {
      const std::int64_t first = task * PackedProduct::kTilesAtOnce;
      product.run(first, std::min(first + PackedProduct::kTilesAtOnce, product.tiles()));
    } else {
      const std::int64_t first = (task - tile_tasks) * kChannelsAtOnce;
      dense_channels(small, x, y_small, first, std::min(first + kChannelsAtOnce, small.n));
    }
  });
}

void qpn8_linear_and_mix(const PackedWeight& weight, const Schedule& schedule, MatrixView<const float> low,
                         MatrixView<const float> normed, MatrixView<float> gates, MatrixView<float> out,
                         Workspace& workspace, ThreadTeam& team) {
  check(low.rows == 1 && out.rows == 1 && out.cols % kTileColumns == 0 && weight.n % out.cols == 0 &&
            gates.cols == weight.n && normed.cols == weight.n,
        "one row, and streams of whole tiles");
  const std::int64_t streams = weight.n / out.cols;
  const std::int64_t tiles = out.cols / kTileColumns;  // of a stream
  const PackedProduct product(weight, schedule, low, gates, workspace, team);
  team.for_shared_ranges(tiles, 1, [&](std::int64_t tile, std::int64_t /*end*/) {
    for (std::int64_t stream = 0; stream < streams; ++stream) {
      product.run(stream * tiles + tile, stream * tiles + tile + 1);
    }
    const std::int64_t first = tile * kTileColumns;
    mix_run(normed.row(0).data() + first, gates.row(0).data() + first, out.cols, streams,
            out.row(0).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(kTileColumns)));
  });
}

}  // namespace qpn8::cpu
