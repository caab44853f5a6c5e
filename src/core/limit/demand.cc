#include "weir/limit/demand.h"

#include <algorithm>

namespace weir {
namespace {

// Source: docs/algorithms/law.md, "Constants".

// Of the slack, the share that waiting may take: what is left covers the
// network and an estimate that is a little off.
constexpr double kWaitShare = .8;
constexpr double kMinRoom = 4;
// Excess that chance does not make below capacity, in queue targets.
constexpr double kLikely = 7;
// Patience, in budgets: at the start and at least, and at most.
constexpr double kLeastPatience = 1;
constexpr double kMostPatience = 16;
constexpr double kPatienceGain = 1.5;

}  // namespace

void Demand::Reset(double new_budget, Instant now) {
  *this = Demand{};
  budget = new_budget;
  patience = kLeastPatience * budget;
  at = since = now;
}

double Demand::Room(const Supply& supply) {
  return std::max(kMinRoom, supply.capacity * supply.slack * kWaitShare);
}

bool Demand::standing(Instant now) const {
  return overloaded && ToSeconds(now - since) >= patience;
}

void Demand::Follow(int64_t arrivals, int64_t queued, const Supply& supply,
                    Instant now) {
  const double dt = std::max(0., ToSeconds(now - at));
  const double keep = kMemory / (kMemory + dt);
  count = (count + static_cast<double>(arrivals)) * keep;
  time = (time + dt) * keep;
  at = std::max(at, now);

  if (!supply.proved && !overloaded) {
    excess = 0;
    since = now;
    return;
  }
  const double more = static_cast<double>(arrivals) - supply.capacity * dt;
  // While places are free there is no backlog, whatever capacity may be.
  excess += supply.held_back ? more : std::min(0., more);
  const double certain = Room(supply);
  const double likely = std::min(kLikely * supply.target, certain);
  excess = std::clamp(
      std::max(excess, static_cast<double>(queued)), 0.,
      overloaded ? std::max<double>(likely, static_cast<double>(queued))
                 : certain);
  if (excess <= 0) return End(now);
  overloaded = overloaded || excess >= certain ||
               (excess >= likely && ToSeconds(now - since) >= patience);
}

void Demand::End(Instant now) {
  if (overloaded) {
    const double lasted = ToSeconds(now - since);
    const double most = kMostPatience * budget;
    patience = lasted > most ? kLeastPatience * budget
                             : std::clamp(kPatienceGain * lasted,
                                          kLeastPatience * budget, most);
  }
  overloaded = false;
  since = now;
}

}  // namespace weir
