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

  /// A matrix that is in no plan and stays as it is stored: what steers the model rather than feeds it.
  std::unique_ptr<Linear> steering(const std::string& tensor, std::int64_t n, std::int64_t k) const;

  /// A vector (norm weight) as one F32 row. Error::bad_value names a tensor with a value that is not finite.
  OwnedTensor row(const std::string& tensor, std::int64_t size) const;

  /// row() of a norm that multiplies by one more than its stored weight.
  OwnedTensor centred_row(const std::string& tensor, std::int64_t size) const;

  /// The taps of a depthwise convolution, stored [channels, 1, taps], as F32 [taps, channels].
  OwnedTensor conv_taps(const std::string& tensor, std::int64_t channels, std::int64_t taps) const;

  /// A tensor of the checkpoint, by the name that it is described under; null if there is none.
  const CheckpointTensor* find(const std::string& tensor) const;

  /// Error::bad_file unless the tensor (I64) holds these values.
  void require_integers(const std::string& tensor, std::span<const std::int64_t> values) const;

  /// The same of this rank's share of a tensor, `share` values a rank.
  OwnedTensor row_share(const std::string& tensor, std::int64_t share) const;

  /// A small matrix in F32. Error::bad_value as row().
  OwnedTensor floats(const std::string& tensor, std::int64_t rows, std::int64_t cols) const;

  /// A table (I64 or I32) of distinct numbers below `choices` in each row, as I32. Error::bad_value names the tensor
  /// and the row that is none.
  OwnedTensor choices(const std::string& tensor, std::int64_t rows, std::int64_t cols, std::int64_t choices) const;

  /// A host vector as one F32 row.
  OwnedTensor row(std::span<const float> values) const;

  /// An embedding table in its stored precision.
  OwnedTensor table(const std::string& tensor, std::int64_t rows, std::int64_t cols) const;

 private:
  std::unique_ptr<Linear> load(const LinearSource& source) const;
  void add_rectangles(const ProjectionPart& part, std::vector<WeightPart>& rectangles) const;
  const Projection& projection_named(const std::string& name) const;
  std::vector<float> bias_of(const Projection& projection) const;
  std::string stored(const std::string& described) const;
  std::vector<float> finite(const std::string& tensor, std::span<const std::int64_t> shape) const;

  const ModelSource& source_;
};

}  // namespace qpn8
