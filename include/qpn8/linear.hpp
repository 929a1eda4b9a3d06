#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "qpn8/matrix.hpp"
#include "qpn8/pack.hpp"
#include "qpn8/schedule.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8 {

/// Scratch memory of one device, bounded when it is made: what does not fit is an error, never a silent reallocation.
/// Used by one call at a time; whoever shares it between projections must not overlap them. Movable; one that was moved
/// from may only be assigned to or destroyed.
class Workspace {
 public:
  static constexpr auto kDefaultBytes = static_cast<std::size_t>(kDefaultWorkspaceBytes);

  /// std::bad_alloc if the system has no such memory.
  explicit Workspace(std::size_t bytes = kDefaultBytes);
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  std::size_t capacity() const;

  /// The first `bytes` bytes, 64-byte aligned; their content is unspecified and the next claim's is the same memory.
  /// More than capacity() is Error::bad_argument that names both numbers.
  std::span<std::byte> claim(std::size_t bytes);

 private:
  class Memory;
  std::unique_ptr<Memory> memory_;
};

/// y = x W^T for a packed weight: x [m, k], y [m, n], FP32 both, FP32 accumulation.
///
/// m <= kMaxPackedRows runs the packed kernel: row i of an m-row call equals the 1-row call bit for bit; more than one
/// row of x is interleaved in the workspace first. A larger m dequantises tile by tile into the workspace and
/// multiplies densely (a few ulp apart from the packed kernel). Bits depend on the schedule and the CPU's instruction
/// set, not on the number of threads. x and y must not overlap. Shapes that do not agree, and a workspace too small for
/// m rows of x (up to kMaxPackedRows) or for one tile (above), are Error::bad_argument; a schedule that does not divide
/// k is Error::unsupported_shape. m = 0 does nothing. Values that are not finite go through as in any sum. Thread-safe
/// for calls that share only x and the weight: workspace and team serve one call at a time. Allocates nothing for m <=
/// kMaxPackedRows after a thread's first call.
void multiply(const PackedWeight& weight, const Schedule& schedule, MatrixView<const float> x, MatrixView<float> y,
              Workspace& workspace, ThreadTeam& team);

/// The plain reference of multiply: decodes each code by its definition and accumulates in FP64, in the order of k.
/// Shapes as there; they are not checked. Slow, pure, thread-safe.
void multiply_reference(const PackedWeight& weight, MatrixView<const float> x, MatrixView<double> y);

}  // namespace qpn8
