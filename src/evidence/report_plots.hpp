#pragma once

#include <string>
#include <vector>

#include "evidence/ab_result.hpp"

namespace qpn8 {

struct Figure {
  std::string title;
  std::string svg;
  std::string caption;  ///< what to look for
};

/// Paired speed, speed of each arm, length change, repetition, positions of divergence.
std::vector<Figure> report_figures(const AbResult& result);

}  // namespace qpn8
