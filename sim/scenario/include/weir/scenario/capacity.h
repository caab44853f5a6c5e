// What a scenario's service can do and what is asked of it, over time.
//
// Both follow from the scenario without playing it: they are the scales on
// which loads are given (0.8 of capacity) and results are judged (the ideal).

#ifndef WEIR_SCENARIO_CAPACITY_H_
#define WEIR_SCENARIO_CAPACITY_H_

#include <cstddef>

#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::scenario {

// The mean of `span` in seconds.
double MeanSeconds(const Span& span);

// State of stage `stage` of `tier` at `at`, with the changes until then: its
// time, with its ramps applied.
Span SpanAt(const Tier& tier, size_t stage, Duration at);

// State of replica `replica` of `tier` at `at`.
struct ReplicaState {
  int32_t workers = 0;  // 0 when it is down.
  double speed = 1;
};
ReplicaState ReplicaAt(const Tier& tier, size_t replica, Duration at);

// Requests per second that the whole service can finish at `at`: of all
// queueing stages of all tiers the one that is spent first, where a tier that
// is called k times per request counts k times.  Pauses lower it by the share
// of time that they take.  0 when nothing is up; kUnlimited when no stage
// queues.  O(tiers * replicas * changes).
inline constexpr double kUnlimited = 1e12;
double CapacityAt(const Scenario& scenario, Duration at);

// Requests per second that the phases and hogs offer at `at` on average; 0
// from the end on.  Bursts count with their mean.
double OfferedAt(const Scenario& scenario, Duration at);

// Load of `phase` at `into` after its start, as a multiple of capacity; bursts
// with their mean.
double LoadAt(const Phase& phase, Duration into);

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_CAPACITY_H_
