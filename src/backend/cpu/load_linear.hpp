#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "backend/cpu/linear.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cpu {

/// A projection as its plan says; the source has passed check_parts() and check_bias().
std::unique_ptr<CpuLinear> load_linear(const LinearSource& source, ThreadTeam& team);

/// The parts of a projection, stacked, as FP4 codes with their scales, which are kept as they are. Error::bad_value
/// naming the tensor for a scale that is NaN, Error::unsupported for a rectangle whose columns cut a scale's.
std::unique_ptr<Fp4Linear> load_fp4(const LinearSource& source, ThreadTeam& team);

/// The parts of a projection, stacked, in the widest of their types: F16 stays F16 and BF16 stays BF16, both together
/// become F32. FP8 with block scales becomes F32 too, which holds every product of a code and a scale exactly.
/// Parallel over rows; the checkpoint's pages are released as they are copied.
std::unique_ptr<DenseLinear> load_dense(const LinearSource& source, ThreadTeam& team);

/// The parts of a projection, stacked, padded with zero channels to the planned width and packed: quantised a channel
/// at a time, or FP8 codes with block scales as they are.
std::unique_ptr<PackedLinear> load_packed(const LinearSource& source, ThreadTeam& team);

/// One checkpoint tensor in its stored precision, F32, F16 or BF16.
OwnedTensor load_table(const Checkpoint& checkpoint, const CheckpointTensor& tensor, ThreadTeam& team);

}  // namespace qpn8::cpu
