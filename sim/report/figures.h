// The figures of a study: how they are written and which is best.

#ifndef WEIR_SIM_REPORT_FIGURES_H_
#define WEIR_SIM_REPORT_FIGURES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/sim/html_report.h"

namespace weir::sim_report {

// The figure that decides: work done in time, of what the ideal would have
// done.
inline constexpr std::string_view kWork = "work_ratio";

struct Column {
  std::string_view figure;
  std::string_view title;
  std::string_view unit;
  double scale;
  int digits;
  bool more_is_better;
  std::string_view meaning;
};
std::span<const Column> Columns();

std::optional<Spread> FigureOf(const Algorithm& algorithm,
                               std::string_view figure);
// Medians of kWork; without one, below all others.
double WorkOf(const Algorithm& algorithm);
// "99.4 %", or a dash.
std::string Percent(std::optional<double> ratio);

// The best of those that may be, by their rounded values; nothing when all
// are equal, as then none is better than another.
// `eligible`: a figure counts only for who did the work, as who does nothing
// is fast.
std::vector<bool> BestOf(const std::vector<std::optional<double>>& values,
                         const std::vector<bool>& eligible, double scale,
                         int digits, bool more_is_better);
// Who did nine tenths of what the one that did most did.
std::vector<bool> DidTheWork(const std::vector<Algorithm>& algorithms);

// Indices of the algorithms, the one with most work first.
std::vector<size_t> ByWork(const std::vector<Algorithm>& algorithms);
// The one with most work of all rivals; nothing when there is none.
std::optional<size_t> BestRival(const std::vector<Algorithm>& algorithms);

// The table of all figures of a study.
std::string FiguresTable(const Study& study);
// What its columns mean.
std::string Meanings(const Page& page);

// A table that may be broader than the screen.
std::string Scrolled(std::string_view name, const std::string& table);

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_FIGURES_H_
