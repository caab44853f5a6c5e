#include "series.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text.h"

namespace weir::sim_report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::string Label(double value, Unit unit) {
  if (unit == Unit::kMilliseconds) return OfMilliseconds(value);
  if (unit == Unit::kSeconds) return Compact(value) + " s";
  return Compact(value);
}

}  // namespace

double Points::Place(size_t point) const {
  const double begin = static_cast<double>(point) * step;
  return (begin + std::min(begin + step, 1.)) / 2;
}

Points Thinned(const std::vector<double>& values, Keep keep, size_t most) {
  const size_t bins = values.size();
  if (bins == 0) return {};
  const size_t width = (bins + most - 1) / most;
  Points points;
  points.step = static_cast<double>(width) / static_cast<double>(bins);
  for (size_t begin = 0; begin < bins; begin += width) {
    const size_t end = std::min(begin + width, bins);
    const std::vector<double> group(values.begin() + static_cast<long>(begin),
                                    values.begin() + static_cast<long>(end));
    const double mean = Mean(group);
    points.values.push_back(
        keep == Keep::kMean || std::isnan(mean) ? mean : Most(group));
  }
  return points;
}

double Most(const std::vector<double>& values) {
  double most = -std::numeric_limits<double>::infinity();
  for (const double value : values) {
    if (std::isfinite(value)) most = std::max(most, value);
  }
  return std::isfinite(most) ? most : 0;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? kNone : sum / static_cast<double>(count);
}

double Axis::Place(double value) const {
  const auto ruled = [this](double x) {
    return logarithmic ? std::log10(std::max(x, low / 10)) : x;
  };
  const double place = (ruled(value) - ruled(low)) / (ruled(high) - ruled(low));
  return std::clamp(place, -.1, 1.1);
}

Axis LinearAxis(double most, Unit unit, int ticks) {
  Axis axis;
  axis.high = most > 0 && std::isfinite(most) ? most : 1;
  // Of 1, 2 and 5 times a power of ten the least that makes no more ticks.
  const double rough = axis.high / ticks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5., 2., 1.}) {
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  }
  for (int i = 0; i * step <= axis.high * (1 + 1e-9); ++i) {
    axis.ticks.push_back({i * step, Label(i * step, unit)});
  }
  return axis;
}

Axis LogarithmicAxis(double least, double most, Unit unit) {
  Axis axis;
  axis.logarithmic = true;
  // A little room, so that a value at a power of ten is no new decade.
  const double first = std::floor(std::log10(least) + 1e-9);
  const double last = std::max(std::ceil(std::log10(most) - 1e-9), first + 1);
  axis.low = std::pow(10, first);
  axis.high = std::pow(10, last);
  const int stride = last - first > 6 ? 2 : 1;
  for (int i = 0; first + i <= last; i += stride) {
    const double value = std::pow(10, first + i);
    axis.ticks.push_back({value, Label(value, unit)});
  }
  return axis;
}

}  // namespace weir::sim_report
