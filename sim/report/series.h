// Series made ready to be drawn: fewer points, and an axis with round ticks.

#ifndef WEIR_SIM_REPORT_SERIES_H_
#define WEIR_SIM_REPORT_SERIES_H_

#include <cstddef>
#include <string>
#include <vector>

namespace weir::sim_report {

// Chosen: about one to a pixel of a chart.
inline constexpr size_t kMostPoints = 300;
// Of rates, which are noisy: the more bins a point stands for, the calmer.
inline constexpr size_t kMostRatePoints = 120;

enum class Keep {
  kMean,  // For rates: the area under the line stays.
  kMost,  // For what matters when it is high.
};

// What is drawn of a series.
struct Points {
  std::vector<double> values;  // NaN: none.
  double step = 1;             // The share of the width that each stands for.

  // Where the middle of what a point stands for lies, in [0, 1].
  double Place(size_t point) const;
};

// At most `most` points, each for the same number of bins (the last may stand
// for fewer).  What is not finite counts as none; NaN where all are none.
Points Thinned(const std::vector<double>& values, Keep keep,
               size_t most = kMostPoints);

// The greatest finite value; 0 when there is none.
double Most(const std::vector<double>& values);
// The mean of the finite values; NaN when there is none.
double Mean(const std::vector<double>& values);

enum class Unit { kNumber, kMilliseconds, kSeconds };

struct Tick {
  double value = 0;
  std::string label;
};

struct Axis {
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  std::vector<Tick> ticks;

  // Where `value` lies: 0 at low, 1 at high; what lies beyond stays beyond by
  // at most a tenth.
  double Place(double value) const;
};

// From zero to `most` or a little above it.
Axis LinearAxis(double most, Unit unit, int ticks);
// Over the powers of ten that hold both; 0 < least <= most.
Axis LogarithmicAxis(double least, double most, Unit unit);

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_SERIES_H_
