#include "model/block_scales.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.hpp"
#include "qpn8/error.hpp"
#include "qpn8/pack.hpp"

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

void require_block_scales(const Checkpoint& checkpoint, const CheckpointTensor& weight) {
  const CheckpointTensor* scales = find_block_scales(checkpoint, weight.name);
  if (scales == nullptr) {
    throw Error(Error::unsupported, fmt::format("{}: F8_E4M3 without block scales; \"{}_scale_inv\" is needed",
                                                printable(weight.name), printable(weight.name)));
  }
  const auto blocks = [](std::int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; };
  const std::vector<std::int64_t> needed = {blocks(weight.rows()), blocks(weight.cols())};
  if (scales->shape == needed) return;
  throw Error(Error::bad_file, fmt::format("{}: shape [{}], one scale a block of {} x {} of {} is [{}]",
                                           printable(scales->name), fmt::join(scales->shape, ", "), kScaleBlock,
                                           kScaleBlock, printable(weight.name), fmt::join(needed, ", ")));
}

}  // namespace qpn8
