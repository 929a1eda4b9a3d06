#pragma once

#include <cstdint>
#include <filesystem>

#include "base/dtype.hpp"

namespace qpn8 {

enum class ExpertForm : std::uint8_t { fp8, fp4, kept };

struct BlockFp8Options {
  DType scales = DType::f32;  ///< f32, as "X.weight_scale_inv"; or f8_e8m0, as "X.scale"
  ExpertForm experts = ExpertForm::fp8;
};

/// Writes a deepseek_v4 folder again with the projections that DeepSeek publishes in FP8 quantised to E4M3 by blocks of
/// 128 x 128, the last of a row or column cut, and its routed experts likewise or in E2M1 by rows of 32. The rest stays
/// as it is. `out` is created; Error::bad_file if it exists already.
void write_block_fp8(const std::filesystem::path& model, const std::filesystem::path& out,
                     const BlockFp8Options& options);

/// Writes such a folder again with every code times its scale as a number in FP32, which holds it exactly.
void write_dequantised(const std::filesystem::path& model, const std::filesystem::path& out);

}  // namespace qpn8
