#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "model/architecture.hpp"

namespace qpn8 {

/// Puts named weights of a model on its backend.
class WeightLoader {
 public:
  explicit WeightLoader(const ModelSource& source) : source_(source) {}

  /// What the projection of that name is loaded from: the plan's route, its tensors, its bias.
  LinearSource linear_source(const std::string& projection) const;

  /// The projection of that name in the plan, packed or dense as the plan says.
  std::unique_ptr<Linear> linear(const std::string& projection) const;

  /// The same for a projection of gate and up, which Backend::linear_gated() multiplies by.
  std::unique_ptr<Linear> gated_linear(const std::string& projection) const;

  /// The planned route of a projection.
  const PlannedProjection& planned(const std::string& projection) const;

  /// A vector (norm weight) as one F32 row. Error::bad_value names a tensor with a value that is not finite.
  OwnedTensor row(const std::string& tensor, std::int64_t size) const;

  /// A host vector as one F32 row.
  OwnedTensor row(std::span<const float> values) const;

  /// An embedding table in its stored precision.
  OwnedTensor table(const std::string& tensor, std::int64_t rows, std::int64_t cols) const;

 private:
  std::unique_ptr<Linear> load(const LinearSource& source) const;
  const Projection& projection_named(const std::string& name) const;
  std::vector<float> bias_of(const Projection& projection) const;

  const ModelSource& source_;
};

}  // namespace qpn8
