#include "study_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "style.h"
#include "text.h"

namespace weir::sim_report {
namespace {

using Values = std::vector<double>;

// Offered load is drawn on a logarithmic axis where the ideal would be a flat
// line at the ground.
constexpr double kSurge = 20;

double MostDrawn(const Chart& chart) {
  double most = 0;
  for (const Line& line : chart.lines) {
    if (line.look.drawn) most = std::max(most, Most(line.points.values));
  }
  return most;
}

std::string Said(const Chart& chart, double (*figure)(const Values&),
                 const std::function<std::string(double)>& shown) {
  std::string text;
  for (const Line& line : chart.lines) {
    if (!line.look.drawn) continue;
    const double value = figure(line.points.values);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", line.name,
                        std::isfinite(value) ? shown(value) : "none");
  }
  return text + ".";
}

double Peak(const std::vector<Layer>& layers) {
  Values sum;
  for (const Layer& layer : layers) {
    sum.resize(std::max(sum.size(), layer.points.values.size()));
    for (size_t i = 0; i < layer.points.values.size(); ++i) {
      if (std::isfinite(layer.points.values[i]))
        sum[i] += layer.points.values[i];
    }
  }
  return Most(sum);
}

std::string ShedDescription(const std::vector<Layer>& layers) {
  std::string text;
  for (const Layer& layer : layers) {
    const double mean = Mean(layer.points.values);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", layer.name,
                        std::isfinite(mean) ? Grouped(mean, 0) : "none");
  }
  return "Mean over the run, attempts per second: " + text + ".";
}

}  // namespace

// Indices of the algorithms as charts and check boxes have them: those that
// are drawn, then the others.
std::vector<size_t> InOrder(const std::vector<Look>& looks) {
  std::vector<size_t> order;
  for (size_t i = 0; i < looks.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&looks](size_t a, size_t b) {
    return std::pair(!looks[a].drawn, looks[a].index) <
           std::pair(!looks[b].drawn, looks[b].index);
  });
  return order;
}

StudyCharts::StudyCharts(const Study& study, const std::vector<Look>& looks)
    : study_(study), looks_(looks), bins_(study.offered.size()) {
  for (const Algorithm& algorithm : study.algorithms) {
    bins_ = std::max(bins_, algorithm.series.good.size());
  }
  seconds_ = static_cast<double>(bins_) * study.bin_s;
  for (const Phase& phase : study.phases) {
    phases_.push_back({phase.start_s / seconds_, phase.name});
  }
}

std::string StudyCharts::Offered() const {
  Chart chart = Empty("Offered", "requests/s");
  chart.area = Thinned(study_.ideal, Keep::kMean, kMostRatePoints);
  chart.area_name = "ideal";
  chart.name_phases = true;
  Line& line = chart.lines.emplace_back();
  line.name = "offered";
  line.look = {.style = kPlainStyle, .drawn = true};
  line.points = Thinned(study_.offered, Keep::kMean, kMostRatePoints);
  const double most =
      std::max(Most(line.points.values), Most(chart.area.values));
  const double ideal = Most(chart.area.values);
  if (ideal > 0 && most > kSurge * ideal) {
    chart.axis = LogarithmicAxis(ideal / 10, most, Unit::kNumber);
  } else {
    chart.axis = LinearAxis(1.08 * most, Unit::kNumber, 5);
  }
  chart.description = fmt::format(
      "At most {} per second were offered; the ideal answers at most {}.",
      Grouped(most, 0), Grouped(ideal, 0));
  return ToSvg(chart);
}

std::string StudyCharts::Goodput() const {
  Chart chart = Empty("Answered in time", "requests/s");
  chart.area = Thinned(study_.ideal, Keep::kMean, kMostRatePoints);
  chart.area_name = "ideal";
  AddLines(chart, Keep::kMean, kMostRatePoints,
           [](const Series& series) { return series.good; });
  // More than the ideal is possible for a moment, not for long.
  const double ideal = Most(chart.area.values);
  chart.axis = LinearAxis(1.12 * (ideal > 0 ? ideal : MostDrawn(chart)),
                          Unit::kNumber, 5);
  chart.description = "Mean over the run, per second: " +
                      Said(chart, Mean, [](double x) { return Grouped(x, 0); });
  return ToSvg(chart);
}

std::string StudyCharts::Latency() const {
  Chart chart = Empty("Latency, p99", "logarithmic");
  AddLines(chart, Keep::kMost, kMostPoints, [](const Series& series) {
    Values values = series.p99_ms;
    for (double& value : values) {
      if (!(value > 0)) value = std::numeric_limits<double>::quiet_NaN();
    }
    return values;
  });
  double least = std::numeric_limits<double>::infinity();
  for (const Line& line : chart.lines) {
    if (!line.look.drawn) continue;
    for (const double value : line.points.values) {
      if (value > 0) least = std::min(least, value);
    }
  }
  const double most = std::max(MostDrawn(chart), study_.deadline_ms);
  if (std::isfinite(least)) {
    chart.axis =
        LogarithmicAxis(least, std::max(least, most), Unit::kMilliseconds);
  }
  chart.due = std::isfinite(least) ? study_.deadline_ms : 0;
  chart.due_name = "deadline";
  chart.description =
      "Highest p99 of the run: " + Said(chart, Most, OfMilliseconds);
  return ToSvg(chart);
}

std::string StudyCharts::Limit() const {
  Chart chart = Empty("Limit", "requests running at once");
  chart.area = Thinned(study_.best_limit, Keep::kMean, kMostRatePoints);
  chart.area_name = "true optimum";
  AddLines(chart, Keep::kMean, kMostPoints,
           [](const Series& series) { return series.limit; });
  // What is far above the optimum is cut off, so that the optimum is seen.
  constexpr double kFar = 4;
  const double best = Most(chart.area.values);
  const double most = std::max(best, MostDrawn(chart));
  chart.axis = LinearAxis(
      1.08 * (best > 0 ? std::min(most, kFar * best) : most), Unit::kNumber, 5);
  chart.description = fmt::format(
      "The true optimum is at most {}. Mean limit: {}", Grouped(best, 0),
      Said(chart, Mean, [](double x) { return Grouped(x, 0); }));
  return ToSvg(chart);
}

std::string StudyCharts::Waiting() const {
  Chart chart = Empty("Queue", "requests waiting before the service");
  AddLines(chart, Keep::kMost, kMostPoints,
           [](const Series& series) { return series.waiting; });
  chart.axis = LinearAxis(1.08 * MostDrawn(chart), Unit::kNumber, 5);
  chart.description = "Longest queue: " +
                      Said(chart, Most, [](double x) { return Grouped(x, 0); });
  return ToSvg(chart);
}

std::string StudyCharts::Sheds() const {
  double most = 0;
  std::vector<StackedChart> charts;
  for (const size_t i : InOrder(looks_)) {
    StackedChart chart = ShedsOf(i);
    const double peak = Peak(chart.layers);
    if (peak <= 0) continue;
    if (looks_[i].drawn) most = std::max(most, peak);
    charts.push_back(std::move(chart));
  }
  std::string html;
  for (StackedChart& chart : charts) {
    // One axis for all, so that they compare.
    chart.axis = LinearAxis(1.08 * most, Unit::kNumber, 5);
    html += ToSvg(chart);
  }
  return html;
}

std::string StudyCharts::WithoutSheds() const {
  std::string names;
  for (const size_t i : InOrder(looks_)) {
    const Algorithm& algorithm = study_.algorithms[i];
    if (algorithm.series.shed.empty() || Peak(ShedsOf(i).layers) > 0) {
      continue;
    }
    names += (names.empty() ? "" : ", ") + algorithm.name;
  }
  if (names.empty()) return {};
  return fmt::format("<p class=\"dim\">Nothing was shed by {}.</p>\n",
                     Escaped(names));
}

Chart StudyCharts::Empty(std::string title, std::string unit) const {
  Chart chart;
  chart.title = std::move(title);
  chart.unit = std::move(unit);
  chart.seconds = seconds_;
  chart.phases = phases_;
  return chart;
}

void StudyCharts::AddLines(
    Chart& chart, Keep keep, size_t most,
    const std::function<Values(const Series&)>& values) const {
  for (const size_t i : InOrder(looks_)) {
    const Algorithm& algorithm = study_.algorithms[i];
    const Values all = values(algorithm.series);
    if (all.empty()) continue;
    chart.lines.push_back(
        {algorithm.name, looks_[i], Thinned(all, keep, most)});
  }
}

StackedChart StudyCharts::ShedsOf(size_t i) const {
  const Algorithm& algorithm = study_.algorithms[i];
  StackedChart chart;
  chart.title = "Shed by " + algorithm.name;
  chart.unit = "attempts/s, by class";
  chart.seconds = seconds_;
  chart.phases = phases_;
  chart.look = looks_[i];
  for (size_t cls = 0; cls < algorithm.series.shed.size(); ++cls) {
    chart.layers.push_back(
        {ClassName(cls), InkOf(cls),
         Thinned(algorithm.series.shed[cls], Keep::kMean, kMostRatePoints)});
  }
  chart.description = ShedDescription(chart.layers);
  return chart;
}

std::string StudyCharts::ClassName(size_t cls) const {
  return cls < study_.classes.size() ? study_.classes[cls]
                                     : fmt::format("class {}", cls);
}

// Classes have the colour of their name where they have one of the four.
size_t StudyCharts::InkOf(size_t cls) const {
  constexpr std::string_view kNames[] = {"vital", "important", "deferrable",
                                         "sheddable"};
  const auto* const found =
      std::find(std::begin(kNames), std::end(kNames), ClassName(cls));
  return found != std::end(kNames)
             ? static_cast<size_t>(found - std::begin(kNames))
             : cls % std::size(kNames);
}

}  // namespace weir::sim_report
