// A study as one HTML file that needs nothing else: no network, no scripts.

#ifndef WEIR_SIM_HTML_REPORT_H_
#define WEIR_SIM_HTML_REPORT_H_

#include <string>
#include <vector>

#include "weir/scenario/scenario.h"
#include "weir/sim/gate.h"
#include "weir/sim/outcome.h"

namespace weir::sim {

// What was found for one scenario; results as RunStudy() gives them, with a
// series for the first seed.
struct ReportedStudy {
  const scenario::Scenario* scenario = nullptr;
  std::vector<std::string> algorithms;
  const std::vector<std::vector<Outcomes>>* results = nullptr;
  std::string command;  // What to type to get it again.
};

// For each scenario: what was offered and done over time, latency, limits
// against the true optimum, queues, sheds by class of the first algorithm, and
// a table in which the best of each column is marked.  Lines are told apart by
// dashes as well as by colours.
std::string HtmlReport(const std::vector<ReportedStudy>& studies);

}  // namespace weir::sim

#endif  // WEIR_SIM_HTML_REPORT_H_
