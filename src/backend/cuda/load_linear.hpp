#pragma once

#include <memory>

#include "backend/backend.hpp"
#include "backend/cuda/linear.hpp"
#include "qpn8/thread_team.hpp"

namespace qpn8::cuda {

/// Loads a projection as cpu::load_dense or cpu::load_packed does and moves it to the GPU; dense weights become FP16.
/// Error::bad_value naming the projection for a weight beyond FP16's range; Error::missing_capability if the GPU has no
/// room. The host's copy is gone when these return.
std::unique_ptr<CudaLinear> load_dense(const LinearSource& source, ThreadTeam& team);
std::unique_ptr<CudaLinear> load_packed(const LinearSource& source, ThreadTeam& team);

/// One checkpoint tensor as an FP16 table.
OwnedTensor load_table(const Checkpoint& checkpoint, const CheckpointTensor& tensor, ThreadTeam& team);

}  // namespace qpn8::cuda
