// What the law makes of demand: whether it is an overload, and how many wait.

#include <algorithm>
#include <cmath>
#include <limits>

#include "weir/limit/limit_law.h"

namespace weir {
namespace {

// As in limit_law.cc: Source: docs/algorithms/law.md, "Constants".

// Of the slack, the share that waiting may take while demand exceeds capacity.
constexpr double kQueueShare = 1. / 5;
// Queue target in standard deviations of the number in service.
constexpr double kQueueDeviations = 6;
constexpr double kMinQueueTarget = 4;
// Work offered beyond capacity that makes an overload, in queue targets, and
// the most of that budget that it may take to serve it.
constexpr double kOverload = 7;
constexpr double kOverloadShare = 1. / 4;

}  // namespace

double LimitLaw::queue_target() const {
  // Arrivals at random fluctuate with 1, service with its own variation; with
  // heavy tails a longer queue was tried and only waited longer.
  const double noise = (1 + std::min(1., variation)) / 2;
  const double natural = capacity * base_latency * noise;
  return std::max(kMinQueueTarget,
                  std::min(kQueueDeviations * std::sqrt(natural),
                           capacity * Slack() * kQueueShare));
}

double LimitLaw::waiting_bound() const {
  // While the limit is being searched, capacity is only known to be at least
  // so much; what waits then is bounded by its deadlines.
  if (searching || capacity <= 0) {
    return std::numeric_limits<double>::infinity();
  }
  return std::max(kMinQueueTarget, capacity * Slack() * kWaitShare);
}

void LimitLaw::FollowDemand(const LawInput& input, Instant now) {
  const double dt = std::max(0., ToSeconds(now - demand_at));
  const double keep = kDemandMemory / (kDemandMemory + dt);
  demand_count = (demand_count + static_cast<double>(input.arrivals)) * keep;
  demand_time = (demand_time + dt) * keep;
  demand_at = now;
  FollowExcess(input, dt);
}

// The queue that there would be, had nothing been refused since the overload
// began.  Unlike demand, which is smoothed over a second, it knows a flood
// within milliseconds; unlike the queue, it does not take the end of a shed
// backlog for the end of the overload.
void LimitLaw::FollowExcess(const LawInput& input, double elapsed) {
  if (mode == LawMode::kStart || capacity <= 0) {
    excess = 0;
    overloaded = false;
    return;
  }
  const double more = static_cast<double>(input.arrivals) - capacity * elapsed;
  // While places are free there is no backlog, whatever capacity may be.
  excess += input.bound || taken ? more : std::min(0., more);
  excess = std::max(excess, static_cast<double>(input.queued));
  const double target = queue_target();
  const double likely = std::max(
      target,
      std::min(kOverload * target, capacity * Slack() * kOverloadShare));
  // A burst is forgotten by then; what lasts longer makes callers wait in vain.
  const double certain = std::max(2 * likely, capacity * Slack() * kWaitShare);
  excess = std::clamp(excess, 0., overloaded ? likely : certain);
  if (excess <= 0) overloaded = false;
  if (!searching && excess >= likely &&
      (demand() > capacity || excess >= certain)) {
    overloaded = true;
  }
}

}  // namespace weir
