#pragma once

#include <memory>
#include <span>
#include <string>

#include "backend/backend.hpp"
#include "base/scratch_folder.hpp"
#include "checkpoint/checkpoint.hpp"
#include "qpn8/contract.hpp"

namespace qpn8 {

/// Random rows of k weights in a small checkpoint, from which any backend loads projections of any width: rows repeat
/// beyond the first 256, which no kernel can profit from.
class RandomWeights {
 public:
  /// Error::bad_file if there is no room for a few MiB.
  RandomWeights(std::int64_t k, WeightType type);

  /// The source of a projection with this k and type; it is valid as long as this object and `plan`.
  LinearSource source(const PlannedProjection& plan) const;

 private:
  std::unique_ptr<ScratchFolder> folder_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

/// Writes numbers into a tensor of F32 or F16 rows.
void write_values(Backend& backend, const Tensor& target, std::span<const float> values);

/// Gaussian-like numbers of deviation 1; the same for the same count.
std::vector<float> random_values(std::int64_t count);

}  // namespace qpn8
