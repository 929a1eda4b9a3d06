#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "checkpoint/model_config.hpp"

namespace qpn8 {

/// What a tensor does in the model, as far as its plausible values depend on it.
enum class TensorRole : std::uint8_t {
  matrix,        ///< multiplied with the last dimension's values
  norm,          ///< near 1
  bias,          ///< near 0: biases, and norms whose weight is added to 1
  block_codes,   ///< E4M3, with block_scales beside it
  block_scales,  ///< E8M0, one a block of 128 x 128
  integers,      ///< I64, by a rule
};

/// A tensor that a checkpoint of some config holds.
struct ListedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  TensorRole role = TensorRole::matrix;
  std::optional<DType> dtype = std::nullopt;               ///< absent: the type that the checkpoint is written in
  std::int64_t inputs = 0;                                 ///< block_scales: of the weight that they scale
  std::function<std::int64_t(std::int64_t)> integer = {};  ///< integers: the element of that index
};

/// Every tensor of a checkpoint with this config, in the order of the forward pass; without lm_head.weight where it is
/// tied. Error::unsupported names a model_type that has no list, Error::bad_file a key of the config that is wrong.
std::vector<ListedTensor> list_tensors(const ModelConfig& config);

}  // namespace qpn8
