#pragma once

#include "qpn8/linear.hpp"
#include "qpn8/matrix.hpp"
#include "qpn8/pack.hpp"
#include "qpn8/schedule.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// The packed product y = x W^T for 1 to kMaxPackedRows rows; multiply() of the public library calls it.
///
/// Row i of an m-row call equals the 1-row call bit for bit; bits depend on the schedule and the instruction set, not
/// on the number of threads, which share the tiles. No memory is allocated. Several rows of x are interleaved in the
/// workspace first, m * k FP32: what does not fit is Error::bad_argument. Shapes and schedule are the caller's to
/// check: see schedule_refusal().
void qpn8_linear(const PackedWeight& weight, const Schedule& schedule, MatrixView<const float> x, MatrixView<float> y,
                 Workspace& workspace, ThreadTeam& team);

/// The same piece by piece, for what shares a hand-over with it. Borrows everything that it is made of.
class PackedProduct {
 public:
  /// Interleaves x in the workspace if it has several rows.
  PackedProduct(const PackedWeight& weight, const Schedule& schedule, MatrixView<const float> x, MatrixView<float> y,
                Workspace& workspace, ThreadTeam& team);

  /// Tiles that are worth taking together.
  static constexpr std::int64_t kTilesAtOnce = 4;

  std::int64_t tiles() const;

  /// The columns of y of the tiles [begin, end); any thread, each tile once.
  void run(std::int64_t begin, std::int64_t end) const;

 private:
  const PackedWeight& weight_;
  const Schedule& schedule_;
  const float* rows_;
  MatrixView<float> y_;
};

}  // namespace qpn8::cpu
