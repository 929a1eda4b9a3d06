#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/model_config.hpp"

namespace qpn8 {

/// What a tensor does in the model, as far as its plausible values depend on it.
enum class TensorRole : std::uint8_t { matrix, norm, bias };

/// A tensor that a checkpoint of some config holds.
struct ListedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  TensorRole role = TensorRole::matrix;
};

/// Every tensor of a checkpoint with this config, in the order of the forward pass; without lm_head.weight where it is
/// tied. Error::unsupported names a model_type that has no list, Error::bad_file a key of the config that is wrong.
std::vector<ListedTensor> list_tensors(const ModelConfig& config);

}  // namespace qpn8
