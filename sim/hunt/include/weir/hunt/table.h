// Many worlds as a distribution, for people.

#ifndef WEIR_HUNT_TABLE_H_
#define WEIR_HUNT_TABLE_H_

#include <string>
#include <vector>

#include "weir/hunt/figures.h"

namespace weir::hunt {

// Of one algorithm over worlds.  Shares and quantiles of none are 1 and 0, as
// of somebody who never did wrong.
struct Distribution {
  // Where doing nothing does at least 0.99 of the ideal.
  size_t carried = 0;
  double within = 1;    // Share that loses at most .005 to doing nothing.
  double lost_p95 = 0;  // Of what is lost to doing nothing,
  double lost_worst = 0;
  double shed_median = 0;  // and of what is shed falsely.
  double shed_p99 = 0;
  // Everywhere else, against the best of all algorithms in that world.
  size_t overload = 0;
  double near = 1;  // Share that reaches .97 of the best.
  double median = 1;
  double mean = 1;
  double p5 = 1;
  double p1 = 1;
  double worst = 1;
  // Of the most critical class, where it alone fits, against the ideal or the
  // best, whichever is less.
  size_t vital = 0;
  double vital_p1 = 1;
  double vital_worst = 1;
  // The same of those who are no hogs.
  size_t others = 0;
  double others_p1 = 1;
  double others_worst = 1;
  // After a disturbance, and what the goals give to come back.
  size_t disturbed = 0;
  double recovered = 1;  // Share that is back at .98, as the last.
  double recovered_worst = 1;
};

// `baseline`: the algorithm that does nothing.
Distribution Distribute(const std::vector<Played>& worlds, size_t algorithm,
                        size_t baseline);

// The bounds of a list such as "within=0.99,lost_worst=0.05" that the figures
// break, a message each.  The names are those of Distribution; of what is lost
// or shed a bound is the most, of all else the least.  An error names a word
// that is no bound.
Result<std::vector<std::string>> BrokenBounds(const Distribution& figures,
                                              const std::string& bounds);

// What the first algorithm loses in this world: to doing nothing where the
// service could carry the load, else to the best.  Negative: nothing.
double Loss(const Played& played, size_t baseline);

struct TableOptions {
  std::vector<std::string> algorithms;  // The first is hunted.
  size_t baseline = 0;                  // Which of them does nothing.
  size_t worst = 10;                    // Worlds to name.
};

// All algorithms over all worlds, the first by the traits of worlds, and the
// worlds in which it loses most.
std::string Table(const std::vector<Played>& worlds,
                  const TableOptions& options);

// The worlds in which the first algorithm loses most, each in a line.
std::string WorstText(const std::vector<Played>& worlds,
                      const TableOptions& options);

}  // namespace weir::hunt

#endif  // WEIR_HUNT_TABLE_H_
