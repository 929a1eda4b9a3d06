#include "model/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

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

/// This rank's rectangles of a part: one, or one a run of rows.
void WeightLoader::add_rectangles(const ProjectionPart& part, std::vector<WeightPart>& rectangles) const {
  WeightPart rectangle = {.weight = &source_.checkpoint->tensor(part.tensor),
                          .block_scales = find_block_scales(*source_.checkpoint, part.tensor),
                          .cols = part.cols};
  const std::int64_t slices = source_.tp / part.copies;
  const std::int64_t slice = source_.tp_rank / part.copies;
  std::int64_t row = 0;
  std::int64_t end = part.rows;
  if (part.split == Split::rows) {
    row = slice * (part.rows / slices);
    end = row + part.rows / slices;
  } else if (part.split == Split::cols) {
    rectangle.cols /= slices;
    rectangle.first_col = slice * rectangle.cols;
  }
  const std::int64_t run = part.run_rows > 0 ? part.run_rows : part.rows;
  while (row < end) {
    const std::int64_t within = row % run;
    rectangle.first_row = part.first_row + row / run * part.run_pitch + within;
    rectangle.rows = std::min(run - within, end - row);
    rectangles.push_back(rectangle);
    row += rectangle.rows;
  }
}

LinearSource WeightLoader::linear_source(const std::string& projection) const {
  const Projection& described = projection_named(projection);
  LinearSource linear;
  linear.plan = &planned(projection);
  linear.checkpoint = source_.checkpoint;
  for (const ProjectionPart& part : described.parts) add_rectangles(part, linear.parts);
  linear.zero_rows = described.zero_rows;
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

OwnedTensor WeightLoader::centred_row(const std::string& tensor, std::int64_t size) const {
  const std::array<std::int64_t, 1> shape = {size};
  std::vector<float> values = finite(tensor, shape);
  for (float& value : values) value += 1.0F;
  return row(values);
}

OwnedTensor WeightLoader::conv_taps(const std::string& tensor, std::int64_t channels, std::int64_t taps) const {
  const std::array<std::int64_t, 3> shape = {channels, 1, taps};
  const std::vector<float> values = finite(tensor, shape);
  std::vector<float> turned(values.size());
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      turned[static_cast<std::size_t>(tap * channels + channel)] =
          values[static_cast<std::size_t>(channel * taps + tap)];
    }
  }
  OwnedTensor matrix = source_.backend->allocate(DType::f32, taps, channels);
  source_.backend->write(matrix.tensor, std::as_bytes(std::span(turned)));
  return matrix;
}

const CheckpointTensor* WeightLoader::find(const std::string& tensor) const {
  const std::string name = stored(tensor);
  return source_.checkpoint->contains(name) ? &source_.checkpoint->tensor(name) : nullptr;
}

void WeightLoader::require_integers(const std::string& tensor, std::span<const std::int64_t> values) const {
  const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(values.size())};
  const CheckpointTensor& found = source_.checkpoint->tensor(stored(tensor), shape);
  const bool equal =
      found.dtype == DType::i64 && std::memcmp(found.bytes.data(), values.data(), values.size_bytes()) == 0;
  if (equal) return;
  throw Error(Error::bad_file, fmt::format("{}: is not [{}] (I64), which follows from config.json", found.name,
                                           fmt::join(values, ", ")));
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
