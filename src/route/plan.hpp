#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "qpn8/contract.hpp"

namespace qpn8 {

/// A projection of a model, by the name that the plan prints ("model.layers.3.self_attn.qkv_proj").
struct ProjectionDesc {
  std::string name;
  TensorDesc tensor;
};

enum class Route : std::uint8_t { dense, qpn8 };

/// Where one projection runs, and why.
struct PlannedProjection {
  std::string name;
  TensorDesc tensor;
  Route route = Route::dense;
  std::string reason;         ///< dense: why not QPN8; qpn8: the contract that admits it
  std::string contract;       ///< qpn8: the admitting contract
  Schedule schedule;          ///< qpn8 only
  std::int64_t padded_n = 0;  ///< qpn8: n, or the width the weight is padded to
};

}  // namespace qpn8
