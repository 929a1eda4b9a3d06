#include "model/weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "model/block_scales.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {

const Projection& WeightLoader::projection_named(const std::string& name) const {
  const auto found = std::find_if(source_.projections.begin(), source_.projections.end(),
                                  [&](const Projection& candidate) { return candidate.desc.name == name; });
  check(found != source_.projections.end(), "a model loads only projections that it described");
  return *found;
}

const PlannedProjection& WeightLoader::planned(const std::string& projection) const {
  return source_.plan->at(projection);
}

/// This rank's rectangle.
WeightPart WeightLoader::part_of(const ProjectionPart& part) const {
  WeightPart whole = {.weight = &source_.checkpoint->tensor(part.tensor),
                      .block_scales = find_block_scales(*source_.checkpoint, part.tensor),
                      .first_row = 0,
                      .rows = part.rows,
                      .first_col = 0,
                      .cols = part.cols};
  const std::int64_t slices = source_.tp / part.copies;
  const std::int64_t slice = source_.tp_rank / part.copies;
  if (part.split == Split::rows) {
    whole.rows /= slices;
    whole.first_row = slice * whole.rows;
  } else if (part.split == Split::cols) {
    whole.cols /= slices;
    whole.first_col = slice * whole.cols;
  }
  return whole;
}

LinearSource WeightLoader::linear_source(const std::string& projection) const {
  const Projection& described = projection_named(projection);
  LinearSource linear;
  linear.plan = &planned(projection);
  linear.checkpoint = source_.checkpoint;
  for (const ProjectionPart& part : described.parts) linear.parts.push_back(part_of(part));
  linear.bias = bias_of(described);
  return linear;
}

std::unique_ptr<Linear> WeightLoader::linear(const std::string& projection) const {
  return load(linear_source(projection));
}

std::unique_ptr<Linear> WeightLoader::gated_linear(const std::string& projection) const {
  LinearSource source = linear_source(projection);
  source.gated = true;
  return load(source);
}

std::unique_ptr<Linear> WeightLoader::load(const LinearSource& source) const {
  std::unique_ptr<Linear> loaded = source_.backend->load_linear(source);
  if (source_.on_loaded) source_.on_loaded(*source.plan);
  return loaded;
}

std::vector<float> WeightLoader::bias_of(const Projection& projection) const {
  const bool any = std::any_of(projection.parts.begin(), projection.parts.end(),
                               [](const ProjectionPart& part) { return !part.bias.empty(); });
  std::vector<float> bias;
  if (!any) return bias;
  for (const ProjectionPart& part : projection.parts) {
    if (part.bias.empty()) {
      bias.insert(bias.end(), static_cast<std::size_t>(part.rows), 0.0F);
      continue;
    }
    const std::array<std::int64_t, 1> shape = {part.rows};
    const std::vector<float> values = source_.checkpoint->floats(source_.checkpoint->tensor(part.bias, shape));
    bias.insert(bias.end(), values.begin(), values.end());
  }
  return bias;
}

std::unique_ptr<Linear> WeightLoader::steering(const std::string& tensor, std::int64_t n, std::int64_t k) const {
  PlannedProjection plan;
  plan.name = tensor;
  plan.tensor.k = k;
  plan.tensor.n = n;
  const std::string name = stored(tensor);
  const std::array<std::int64_t, 2> shape = {n, k};
  LinearSource source = {.plan = &plan, .checkpoint = source_.checkpoint, .parts = {}, .bias = {}};
  source.parts.push_back({.weight = &source_.checkpoint->tensor(name, shape),
                          .block_scales = find_block_scales(*source_.checkpoint, name),
                          .rows = n,
                          .cols = k});
  return source_.backend->load_linear(source);
}

std::string WeightLoader::stored(const std::string& described) const {
  const Architecture& architecture = find_architecture(*source_.config);
  return architecture.stored_name == nullptr ? described : architecture.stored_name(*source_.checkpoint, described);
}

std::vector<float> WeightLoader::finite(const std::string& tensor, std::span<const std::int64_t> shape) const {
  const std::string name = stored(tensor);
  std::vector<float> values = source_.checkpoint->floats(source_.checkpoint->tensor(name, shape));
  const auto bad = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (bad != values.end()) {
    throw Error(Error::bad_value,
                fmt::format("{}: value {} is not finite, expected a finite number", name, bad - values.begin()));
  }
  return values;
}

OwnedTensor WeightLoader::row(const std::string& tensor, std::int64_t size) const {
  const std::array<std::int64_t, 1> shape = {size};
  return row(finite(tensor, shape));
}

OwnedTensor WeightLoader::row_share(const std::string& tensor, std::int64_t share) const {
  const std::array<std::int64_t, 1> shape = {share * source_.tp};
  const std::vector<float> values = finite(tensor, shape);
  return row(
      std::span(values).subspan(static_cast<std::size_t>(source_.tp_rank * share), static_cast<std::size_t>(share)));
}

OwnedTensor WeightLoader::floats(const std::string& tensor, std::int64_t rows, std::int64_t cols) const {
  const std::array<std::int64_t, 2> shape = {rows, cols};
  const std::vector<float> values = finite(tensor, shape);
  OwnedTensor matrix = source_.backend->allocate(DType::f32, rows, cols);
  source_.backend->write(matrix.tensor, std::as_bytes(std::span(values)));
  return matrix;
}

OwnedTensor WeightLoader::row(std::span<const float> values) const {
  OwnedTensor row = source_.backend->allocate(DType::f32, 1, static_cast<std::int64_t>(values.size()));
  source_.backend->write(row.tensor, std::as_bytes(values));
  return row;
}

OwnedTensor WeightLoader::table(const std::string& tensor, std::int64_t rows, std::int64_t cols) const {
  const std::array<std::int64_t, 2> shape = {rows, cols};
  return source_.backend->load_table(*source_.checkpoint, source_.checkpoint->tensor(stored(tensor), shape));
}

}  // namespace qpn8
