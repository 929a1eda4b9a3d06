#pragma once

#include <cstdint>

#include "qpn8/pack.hpp"

// How the GEMM cuts its matrices; gemm.cpp computes with the pieces.

namespace qpn8::cpu {

// The inputs of a panel: 256 x 32 floats are 32 KiB and stay in the first-level cache while every strip of rows passes
// over them. A multiple of the scale block.
inline constexpr std::int64_t kPanelInputs = 256;
inline constexpr std::int64_t kPanelFloats = kPanelInputs * kTileColumns;
// Panels a thread fills before it passes over the rows: the rows' inputs stay in the second-level cache for all of
// them.
inline constexpr std::int64_t kPanelsAtOnce = 4;
// Rows of the tallest strip of any instruction set.
inline constexpr std::int64_t kMaxStripRows = 12;

/// Some rows of x, rearranged: for every block of kPanelInputs inputs, for every strip of rows, [inputs][rows of
/// strip]. Rows are dealt to the strips evenly, so that no strip is left with one or two.
struct GemmRows {
  float* data;
  std::int64_t rows;
  std::int64_t k;
  std::int64_t strips;

  std::int64_t first_row(std::int64_t strip) const { return rows * strip / strips; }
  const float* block(std::int64_t begin, std::int64_t inputs, std::int64_t strip) const {
    return data + begin * rows + first_row(strip) * inputs;
  }
};

}  // namespace qpn8::cpu
