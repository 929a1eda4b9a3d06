#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evidence/statistics.hpp"

namespace qpn8 {

// Plots as inline SVG. Colours are those of the page's style sheet by class ("series-a"), so that a plot follows the
// page into dark mode; widths follow the view box, so that it follows the page's width.

struct PlotSeries {
  std::string name;       ///< as shown beside it
  std::string css_class;  ///< "series-a"
  std::vector<double> values;
};

struct PlotPoint {
  double x = 0.0;
  double y = 0.0;
  std::string label;    ///< shown when pointed at
  bool marked = false;  ///< drawn to stand out
};

/// Round numbers in [low, high], some `count` of them, at least `least` apart; low < high.
std::vector<double> nice_ticks(double low, double high, int count, double least = 0.0);

enum class Values : std::uint8_t { real, whole };  ///< whole numbers get bins centred on them, a whole number wide

/// One histogram a series, below each other over one axis, each with its median and the count of its highest bin, which
/// fills its height. A series without values says so.
std::string histogram_plot(const std::string& title, const std::string& axis, Values kind,
                           const std::vector<PlotSeries>& series);

/// Points over two axes of the same range, with the diagonal where both are equal.
std::string paired_scatter(const std::string& title, const std::string& x_axis, const std::string& y_axis,
                           const std::vector<PlotPoint>& points);

}  // namespace qpn8
