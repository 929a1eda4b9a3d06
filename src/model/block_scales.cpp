#include "model/block_scales.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.hpp"
#include "qpn8/error.hpp"
#include "qpn8/pack.hpp"
#include "quant/e2m1.hpp"

namespace qpn8 {

const CheckpointTensor* find_block_scales(const Checkpoint& checkpoint, const std::string& weight) {
  const std::string suffix = ".weight";
  if (checkpoint.contains(weight + "_scale_inv")) return &checkpoint.tensor(weight + "_scale_inv");
  if (weight.ends_with(suffix)) {
    const std::string scale = weight.substr(0, weight.size() - suffix.size()) + ".scale";
    if (checkpoint.contains(scale)) return &checkpoint.tensor(scale);
  }
  return nullptr;
}

namespace {

void require_shape(const CheckpointTensor& scales, const CheckpointTensor& weight,
                   const std::vector<std::int64_t>& needed, std::int64_t block_rows, std::int64_t block_cols) {
  if (scales.shape == needed) return;
  throw Error(Error::bad_file, fmt::format("{}: shape [{}], one scale a block of {} x {} of {} is [{}]",
                                           printable(scales.name), fmt::join(scales.shape, ", "), block_rows,
                                           block_cols, printable(weight.name), fmt::join(needed, ", ")));
}

}  // namespace

void require_block_scales(const Checkpoint& checkpoint, const CheckpointTensor& weight) {
  const CheckpointTensor* scales = find_block_scales(checkpoint, weight.name);
  if (scales == nullptr) {
    throw Error(Error::unsupported, fmt::format("{}: F8_E4M3 without block scales; \"{}_scale_inv\" is needed",
                                                printable(weight.name), printable(weight.name)));
  }
  const auto blocks = [](std::int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; };
  require_shape(*scales, weight, {blocks(weight.rows()), blocks(weight.cols())}, kScaleBlock, kScaleBlock);
}

void require_group_scales(const Checkpoint& checkpoint, const CheckpointTensor& weight) {
  const CheckpointTensor* scales = find_block_scales(checkpoint, weight.name);
  if (scales == nullptr) {
    throw Error(Error::unsupported,
                fmt::format("{}: {} without scales, so no FP4 codes; F32, F16, BF16 or F8_E4M3 is needed",
                            printable(weight.name), to_string(weight.dtype)));
  }
  require_shape(*scales, weight, {weight.rows(), 2 * weight.cols() / kFp4Group}, 1, kFp4Group);
}

}  // namespace qpn8
