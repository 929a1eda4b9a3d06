#include "evidence/svg_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "evidence/html_text.hpp"

namespace qpn8 {
namespace {

constexpr double kWidth = 520;
constexpr double kLeft = 76;
constexpr double kRight = kWidth - 16;
constexpr double kRowHeight = 74;  ///< of one histogram
constexpr double kScatterHeight = 420;
constexpr int kMostBins = 32;

/// From values to a stretch of the drawing; `from` > `to` turns it round, as a vertical axis needs.
struct Scale {
  double low;
  double high;
  double from;
  double to;

  double operator()(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

/// The values' range with a little air; around a single value, some range.
std::pair<double, double> padded_range(double low, double high) {
  const double air = high > low ? 0.04 * (high - low) : std::max(0.05 * std::abs(low), 0.5);
  return {low - air, high + air};
}

std::pair<double, double> range_of(const std::vector<double>& values) {
  if (values.empty()) return {0.0, 1.0};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return padded_range(*low, *high);
}

std::string text_at(double x, double y, std::string_view anchor, const std::string& text, std::string_view css = "") {
  return fmt::format(R"(<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", css, x, y, anchor,
                     html_text(text));
}

std::string line(std::string_view css, double x1, double y1, double x2, double y2) {
  return fmt::format(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", css, x1, y1, x2, y2);
}

std::string number(double value) { return fmt::format("{:g}", std::abs(value) < 1e-12 ? 0.0 : value); }

std::string open_svg(const std::string& title, double height) {
  return fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" aria-label="{}">)", kWidth, height, html_text(title));
}

/// Ticks below the drawing, with lines up to `top`.
std::string horizontal_axis(const Scale& x, double top, double bottom, const std::string& label,
                            double least_step = 0.0) {
  std::string svg;
  for (const double tick : nice_ticks(x.low, x.high, 6, least_step)) {
    svg += line("grid", x(tick), top, x(tick), bottom);
    svg += text_at(x(tick), bottom + 16, "middle", number(tick));
  }
  return svg + text_at((kLeft + kRight) / 2, bottom + 36, "middle", label, "axis");
}

/// A histogram's range, cut into bins of one width.
struct Bins {
  double low;
  double width;
  int count;

  double high() const { return low + width * count; }
};

Bins bins_of(const std::vector<double>& values, Values kind) {
  if (kind == Values::whole && !values.empty()) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const double width = std::ceil((*most - *least + 1) / kMostBins);
    return {*least - 0.5, width, static_cast<int>(std::ceil((*most - *least + 1) / width))};
  }
  const auto [low, high] = range_of(values);
  return {low, (high - low) / kMostBins, kMostBins};
}

std::vector<int> bin_counts(const PlotSeries& series, const Bins& bins) {
  std::vector<int> counts(static_cast<std::size_t>(bins.count), 0);
  for (const double value : series.values) {
    const auto bin = static_cast<int>((value - bins.low) / bins.width);
    ++counts[static_cast<std::size_t>(std::clamp(bin, 0, bins.count - 1))];
  }
  return counts;
}

/// Bars of the counts, over a base line at `bottom`; a pointer on a bar is told its numbers.
std::string bars(const PlotSeries& series, const Bins& bins, const Scale& x, double top, double bottom) {
  const std::vector<int> counts = bin_counts(series, bins);
  const int most = *std::max_element(counts.begin(), counts.end());
  std::string svg = text_at(kLeft - 8, (top + bottom) / 2 + 18, "end", fmt::format("peak {}", most), "peak");
  for (int bin = 0; bin < bins.count; ++bin) {
    const int count = counts[static_cast<std::size_t>(bin)];
    if (count == 0) continue;
    // A single value among thousands must still be seen.
    const double height = std::max(2.0, (bottom - top - 14) * count / most);
    const double low = bins.low + bins.width * bin;
    const double left = x(low);
    svg += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{} of {} in {:.4g} to "
        "{:.4g}</title></rect>",
        series.css_class, left + 0.5, bottom - height, x(low + bins.width) - left - 1, height, count,
        series.values.size(), low, low + bins.width);
  }
  return svg;
}

std::string histogram_row(const PlotSeries& series, const Bins& bins, const Scale& x, double top) {
  const double bottom = top + kRowHeight - 12;
  std::string svg = line("base", kLeft, bottom, kRight, bottom);
  svg += text_at(kLeft - 8, (top + bottom) / 2 + 4, "end", series.name, "name");
  if (series.values.empty()) return svg + text_at((kLeft + kRight) / 2, bottom - 8, "middle", "no values");
  svg += bars(series, bins, x, top, bottom);
  const double middle = median(series.values);
  svg += line("median", x(middle), top, x(middle), bottom);
  const bool right_half = x(middle) > (kLeft + kRight) / 2;
  svg += text_at(x(middle) + (right_half ? -5 : 5), top + 9, right_half ? "end" : "start",
                 fmt::format("median {:.4g}", middle));
  return svg;
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int count, double least) {
  const double raw = std::max((high - low) / count, least);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const auto last = static_cast<long>(std::floor(high / step + 1e-9));
  for (auto tick = static_cast<long>(std::ceil(low / step - 1e-9)); tick <= last; ++tick) {
    ticks.push_back(static_cast<double>(tick) * step);
  }
  return ticks;
}

std::string histogram_plot(const std::string& title, const std::string& axis, Values kind,
                           const std::vector<PlotSeries>& series) {
  std::vector<double> all;
  for (const PlotSeries& one : series) all.insert(all.end(), one.values.begin(), one.values.end());
  const Bins bins = bins_of(all, kind);
  const Scale x{bins.low, bins.high(), kLeft, kRight};
  const double bottom = 8 + kRowHeight * static_cast<double>(series.size());
  std::string svg = open_svg(title, bottom + 44);
  svg += horizontal_axis(x, 8, bottom, axis, kind == Values::whole ? 1.0 : 0.0);
  double top = 8;
  for (const PlotSeries& one : series) {
    svg += histogram_row(one, bins, x, top);
    top += kRowHeight;
  }
  return svg + "</svg>";
}

std::string paired_scatter(const std::string& title, const std::string& x_axis, const std::string& y_axis,
                           const std::vector<PlotPoint>& points) {
  std::vector<double> all;
  for (const PlotPoint& point : points) {
    all.push_back(point.x);
    all.push_back(point.y);
  }
  const auto [low, high] = range_of(all);
  const double top = 10;
  const double bottom = kScatterHeight - 46;
  const Scale x{low, high, kLeft, kRight};
  const Scale y{low, high, bottom, top};
  std::string svg = open_svg(title, kScatterHeight);
  svg += horizontal_axis(x, top, bottom, x_axis);
  for (const double tick : nice_ticks(low, high, 6)) {
    svg += line("grid", kLeft, y(tick), kRight, y(tick));
    svg += text_at(kLeft - 6, y(tick) + 4, "end", number(tick));
  }
  svg += fmt::format(
      "<text class=\"axis\" text-anchor=\"middle\" transform=\"translate(12 {:.1f}) rotate(-90)\">{}</text>",
      (top + bottom) / 2, html_text(y_axis));
  svg += line("equal", x(low), y(low), x(high), y(high));
  for (const bool marked : {false, true}) {  // what stands out is drawn over the rest
    for (const PlotPoint& point : points) {
      if (point.marked != marked) continue;
      svg += fmt::format(R"(<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"><title>{}</title></circle>)",
                         marked ? "point marked" : "point", x(point.x), y(point.y), marked ? 4 : 3,
                         html_text(point.label));
    }
  }
  if (points.empty()) svg += text_at((kLeft + kRight) / 2, (top + bottom) / 2, "middle", "no values");
  return svg + "</svg>";
}

}  // namespace qpn8
