// What a simulated run says: the report that real runs have too, and what only
// a simulator can see.

#ifndef WEIR_SIM_OUTCOME_H_
#define WEIR_SIM_OUTCOME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/scenario/report.h"
#include "weir/time.h"

namespace weir::sim {

// One bin of the time series; rates are per second.
struct Bin {
  Duration at{};  // Its start.
  double offered = 0;
  double good = 0;
  double ideal = 0;
  double late = 0;
  std::vector<double> shed;  // By class; attempts.
  Duration p50{};            // Of what was answered in it.
  Duration p99{};
  double limit = 0;       // Of all entry replicas, at its end; may be infinite.
  double best_limit = 0;  // Inflight that capacity needs when nothing queues.
  int64_t waiting = 0;    // In the gates of the entry tier, at its end.
};

struct Outcomes {
  // Latency counts each attempt from its own start.
  scenario::Report report;

  // Jain's index over the clients of one class, on what each got of the
  // smaller of its demand and its fair share; of the classes the least.
  double fairness = 1;
  // Goodput ratio of the clients that are no hogs, when there are hogs.
  std::optional<double> others_good_ratio;
  // Of 1000 admitted attempts, those of a class while a more critical one was
  // shed in the same 50 ms.
  double inversions_per_1000 = 0;
  // Deviation over mean of the goodput of 100 ms steps, from 2 s after the
  // start of each phase on.
  double unsteadiness = 0;

  std::vector<Bin> series;
  uint64_t events = 0;
  // Attempts that were never answered, by the end of the run.
  uint64_t unanswered = 0;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_OUTCOME_H_
