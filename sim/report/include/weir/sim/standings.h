// Who did how well: ranks in each scenario of a page, and over all of them.
//
// An algorithm has a rank by each of three measures: work done in time, the
// most critical class answered in time, and p99.  It is one more than the
// number of competitors that are better by what is shown, so those that read
// alike share a rank.  By p99 the ones that did less than nine tenths of the
// most work come last, as who does nothing is fast.  Mutants, and variants of
// what the page is about, are ranked but count as nobody's competitors.

#ifndef WEIR_SIM_STANDINGS_H_
#define WEIR_SIM_STANDINGS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "weir/sim/html_report.h"

namespace weir::sim_report {

// Of one algorithm in one scenario; a rank of 0: the measure has no value.
struct Standing {
  size_t work = 0;
  size_t vital = 0;
  size_t p99 = 0;
  // Within a hundredth of the most work and, of those who are, within a tenth
  // of the lowest p99.
  bool top = false;
  size_t goals_met = 0;  // By the median over the seeds.

  double mean() const;  // Of the ranks that there are.
};

struct StudyStandings {
  std::vector<Standing> algorithms;  // As Study::algorithms.
  size_t competitors = 0;
  // Of the competitors the one with the most work, and of those that did nine
  // tenths of it the one with the lowest p99; the page's own only if nobody
  // else is as good.
  std::optional<size_t> most_work;
  std::optional<size_t> lowest_p99;
};

// Of one algorithm over all scenarios.
struct Place {
  std::string name;
  bool rival = false;
  bool mutant = false;
  size_t studies = 0;
  double mean_rank = 0;  // Over the scenarios, of Standing::mean().
  size_t top = 0;        // Scenarios in whose top group it is.
  size_t goals_met = 0;
  size_t goals = 0;
  double least_work = 0;
  double median_work = 0;
  std::string worst_study;
};

struct Standings {
  std::vector<StudyStandings> studies;  // As Page::studies.
  std::vector<Place> places;            // The lowest mean rank first.
};

Standings StandingsOf(const Page& page);

bool Met(const Goal& goal, const std::optional<Spread>& value);

// Mutants that broke no bound under some seed: "mutant-maximum in S01-calm".
std::vector<std::string> PassingMutants(const Page& page);

// For people: one row for each scenario, the places, then the figures of each
// scenario, with at most `most` algorithms, mutants and baselines besides.
std::string StandingsText(const Page& page, size_t most);
// One JSON object on one line, without a newline.
std::string StandingsJson(const Page& page);

// Adds the rivals that stand in such an object to the studies of the same
// scenarios; their lines over time are not in it.  Returns what is wrong with
// it, or nothing.
std::string AddRivalsFrom(const std::string& standings_json, Page& page);

}  // namespace weir::sim_report

#endif  // WEIR_SIM_STANDINGS_H_
