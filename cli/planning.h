// How many instances a scenario needs, found by playing it.

#ifndef WEIR_CLI_PLANNING_H_
#define WEIR_CLI_PLANNING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/scenario/scenario.h"
#include "weir/sim/gate.h"
#include "weir/sim/outcome.h"
#include "weir/time.h"

namespace weir::cli {

// One bound of a goal: "goodput>=0.99", "p99<=200ms", "vital>=0.999".
struct GoalBound {
  std::string text{};    // As it was written.
  std::string metric{};  // Of scenario::Metric().
  std::string cls{};     // The class it is about; empty: all requests.
  bool at_least = true;
  double value = 0;  // In the metric's unit.
};
// Bounds separated by commas.  `goodput` is the share of all requests that is
// answered in time, as is the name of a class; p50, p99 and p999 are latencies.
Result<std::vector<GoalBound>> ParseGoal(std::string_view text);
// What the report has for it; nothing when no such request was offered.
std::optional<double> ValueOf(const GoalBound& bound,
                              const scenario::Report& report);
bool Holds(const GoalBound& bound, const scenario::Report& report);

// Instances that serve `peak` requests per second with `capacity` each while
// `spare` of them are away: 5000 and 19000 with two to spare are 4 + 2.
int InstancesFor(double peak, double capacity, int spare);
// The same while the largest of `sites` equal sites is away.
int InstancesForSites(double peak, double capacity, int sites);

// What a plan asks.  Instances are replicas of the scenario's first tier.
struct Variant {
  int lose = 0;   // Instances that go away at `lose_at` for good.
  int sites = 0;  // Above 0: all instances of one of so many sites go instead.
  Duration lose_at{};
  std::optional<int> retries{};
  std::optional<int> layers{};

  int Lost(int instances) const {
    return sites > 0 ? (instances + sites - 1) / sites : lose;
  }
};

// When instances go unless it is said: after a third of the run, on a whole
// millisecond, so that it can be read.
Duration UsualLoss(Duration run);

// The scenario with `instances` and what `variant` says.  The load stays what
// it was in requests per second.  An error when the scenario has what cannot
// be told for another number of instances.
Result<scenario::Scenario> WithInstances(const scenario::Scenario& scenario,
                                         int instances, const Variant& variant);

// The most that the scenario offers at a time, in requests per second, and
// what one instance can do.
double PeakOf(const scenario::Scenario& scenario);
double CapacityOfOne(const scenario::Scenario& scenario);

// What one number of instances makes of it.
struct Trial {
  int instances = 0;
  std::vector<sim::Outcomes> runs;  // One a seed.

  bool Meets(const std::vector<GoalBound>& goal) const;
  // The worst over the seeds.
  std::optional<double> Worst(const GoalBound& bound) const;
};

struct Search {
  std::vector<Trial> trials;  // In order of instances.
  std::optional<int> answer;  // The fewest that meet the goal; none do.
  // False: some number above the answer was tried and missed the goal.
  bool monotone = true;
};
// Bisects [low, high] for the fewest instances with which `run` meets the goal,
// on the assumption that more do no worse, and tries one more than that to see
// whether it holds.  O(log(high - low)) runs.
Search FindFewest(int low, int high, const std::vector<GoalBound>& goal,
                  const std::function<Trial(int)>& run);

}  // namespace weir::cli

#endif  // WEIR_CLI_PLANNING_H_
