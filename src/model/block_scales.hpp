#pragma once

#include <string>

#include "checkpoint/checkpoint.hpp"

namespace qpn8 {

/// The block scales that go with a weight: "X.weight_scale_inv", or "X.scale" beside "X.weight"; null if there are
/// none.
const CheckpointTensor* find_block_scales(const Checkpoint& checkpoint, const std::string& weight);

/// Error naming the tensor unless an FP8 weight has its scales (unsupported), one for every block of 128 x 128
/// (bad_file). Their values are checked when they are loaded.
void require_block_scales(const Checkpoint& checkpoint, const CheckpointTensor& weight);

/// The same for FP4 codes, two a byte: a scale (E8M0) for every row and 32 inputs.
void require_group_scales(const Checkpoint& checkpoint, const CheckpointTensor& weight);

}  // namespace qpn8
