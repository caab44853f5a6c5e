// What a comparison found, as one HTML file that needs nothing else.
//
// The page reads without a network and without scripts; a few lines of script
// only open folded parts for printing and for links.  Equal input gives equal
// bytes.  All text is escaped, so names may be anything.
//
// A line of a chart has at most 300 points however long the series, and
// scenarios beyond the first are folded, so that all scenarios against all
// rivals are one page of a few megabytes.

#ifndef WEIR_SIM_HTML_REPORT_H_
#define WEIR_SIM_HTML_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::sim_report {

// A figure over the seeds.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

// What one algorithm did under the first seed, a value for each bin; NaN where
// there is none.  A series may be empty: its line is left out.
struct Series {
  std::vector<double> good;  // Answered in time, requests/s.
  std::vector<double> p99_ms;
  std::vector<double> limit;              // Infinite where there is none.
  std::vector<double> waiting;            // Requests before the service.
  std::vector<std::vector<double>> shed;  // [class][bin], attempts/s.
};

struct Algorithm {
  std::string name;
  bool rival = true;    // False: ours, in whatever variant, or a mutant.
  bool mutant = false;  // Must break a bound, or the scenario proves nothing.
  // By the names of [expect] and those of Figures() below.
  std::map<std::string, Spread, std::less<>> figures;
  // good / offered of each class, as in Study::classes.
  std::vector<std::optional<Spread>> class_good_ratio;
  Series series;
  std::vector<std::string> broken;  // Bounds of the scenario that it broke.
  size_t seeds_broken = 0;          // Seeds under which it broke some.
  // What the figures of Study::goals are.
  std::vector<std::optional<Spread>> at_goals;
};

// What a figure of a scenario is meant to reach.
struct Goal {
  std::string name;  // "work_ratio of up-2@1".
  double value = 0;
  bool at_least = true;  // Else at most.
};

struct Phase {
  std::string name;
  double start_s = 0;
};

// One scenario.
struct Study {
  std::string name;
  std::string description;
  // What a reader should know of it: {"Deadline", "500 ms"}.
  std::vector<std::pair<std::string, std::string>> facts;
  std::string command;  // What to type to get it again.
  std::vector<uint64_t> seeds;
  uint64_t requests = 0;             // Measured, under all seeds.
  std::vector<std::string> classes;  // Most critical first.
  std::vector<Phase> phases;         // In order.
  double deadline_ms = 0;            // Zero: not drawn.

  // A value for each bin, as in Series.  All bins are of one width.
  double bin_s = 1;
  std::vector<double> offered;     // Requests/s.
  std::vector<double> ideal;       // What could be answered in time of it.
  std::vector<double> best_limit;  // Inflight that capacity needs.

  std::vector<Goal> goals;
  std::vector<Algorithm> algorithms;  // The first is what the page is about.
};

struct Page {
  std::string title = "weir sim";
  std::string command;  // Of the whole page; empty: each study has its own.
  std::vector<Study> studies;
  // Drawn at first besides the first algorithm and its best rival, of each
  // study; the others wait behind their check boxes.
  std::vector<std::string> drawn = {"fixed", "none"};
};

// The figures that tables have, in their order.
std::vector<std::string_view> Figures();

std::string HtmlReport(const Page& page);

}  // namespace weir::sim_report

#endif  // WEIR_SIM_HTML_REPORT_H_
