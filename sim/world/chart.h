// Line charts as inline SVG.

#ifndef WEIR_SIM_WORLD_CHART_H_
#define WEIR_SIM_WORLD_CHART_H_

#include <string>
#include <utility>
#include <vector>

namespace weir::sim {

struct ChartLine {
  std::string name;
  size_t style = 0;  // Index of the CSS classes l0, l1, ...: colour and dash.
  std::vector<double> values;  // One for each instant; NaN: none.
};

struct Chart {
  std::string title;
  std::string unit;
  bool logarithmic = false;
  double ceiling = 0;           // Values above are cut off; zero: none.
  std::vector<double> seconds;  // The instants.
  std::vector<std::pair<double, std::string>> marks;  // Begin of phases.
  std::vector<ChartLine> lines;
};

// A figure with title and legend.
std::string ToSvg(const Chart& chart);

// Text in which HTML's own characters are escaped.
std::string Escaped(const std::string& text);

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_CHART_H_
