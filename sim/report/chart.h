// Charts as inline SVG.

#ifndef WEIR_SIM_REPORT_CHART_H_
#define WEIR_SIM_REPORT_CHART_H_

#include <cstddef>
#include <string>
#include <vector>

#include "series.h"

namespace weir::sim_report {

// Where an algorithm is found in the page's style sheet.
struct Look {
  static constexpr size_t kAlways = ~size_t{0};
  // Of its check box: classes t0, a0; t1, a1; ...  kAlways: it has none.
  size_t index = kAlways;
  size_t style = 0;    // Colour and dash: classes s0, s1, ...
  bool drawn = false;  // At first.
};

struct Line {
  std::string name;
  Look look;
  Points points;
};

struct Mark {
  double place = 0;  // In [0, 1] of the width.
  std::string name;
};

struct Chart {
  std::string title;
  std::string unit;
  std::string description;  // For those who do not see it.
  double seconds = 0;       // How much time the width is.
  Axis axis;
  std::vector<Mark> phases;
  bool name_phases = false;
  Points area;  // The ideal, as a filled ground; may be empty.
  std::string area_name;
  double due = 0;  // A level line with a name; zero: none.
  std::string due_name;
  std::vector<Line> lines;
};

// A figure.
std::string ToSvg(const Chart& chart);

struct Layer {
  std::string name;
  size_t ink = 0;  // Classes k0, k1, ...
  Points points;
};

// Sheds of one algorithm, classes on top of each other.
struct StackedChart {
  std::string title;
  std::string unit;
  std::string description;
  double seconds = 0;
  Axis axis;
  std::vector<Mark> phases;
  std::vector<Layer> layers;  // From the ground up.
  Look look;
};
std::string ToSvg(const StackedChart& chart);

// What stands beside a name: its line.
std::string Swatch(size_t style);

// Strips of dots: for each row where its values lie between 0 and 1.
struct DotRow {
  std::string name;
  size_t style = 0;
  bool strong = false;
  std::vector<double> values;
};
std::string DotStrips(const std::string& title, const std::string& description,
                      const std::vector<DotRow>& rows);

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_CHART_H_
