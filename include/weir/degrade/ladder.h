// DegradeLadder chooses how much cheaper than in full a resource is answered.
//
//   x  = demand / capacity while the excess is shed, else 0
//   e  = x smoothed with a memory of one second
//   up    one level     when e >= the next level's `excess`, and a second has
//                       passed since the last change
//   down  one level     when e < 0.5 for 10 s, and either demand has been
//                       below 0.9 of the capacity that there was without the
//                       level, or the last change is 10 min ago
//
// Up one by one, so that the gain of one level is seen before the next is
// taken; down only when the load that made it necessary has gone.  A degraded
// service has more capacity, so the end of the overload says nothing about
// that: without the memory of the former capacity, a load between the two
// would turn the level on and off for ever.  Capacity may have been low for
// another reason than the load, so every ten minutes it is tried all the same.
//
// Source: [SRE2016] chapter 22, "Load Shedding and Graceful Degradation": it
// should be rare, simple, and come before refusing much.  The book gives no
// formula; all of this one is ours.
//
// State and input only; belongs to whoever steps it.  O(1).

#ifndef WEIR_DEGRADE_LADDER_H_
#define WEIR_DEGRADE_LADDER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/time.h"

namespace weir {

class DegradeLadder {
 public:
  // Chosen: an operator who needs more than four cannot tell them apart.
  static constexpr size_t kMaxLevels = 4;
  // Time without which no second step up is taken: the memory of demand.
  static constexpr Duration kRise = std::chrono::seconds(1);
  // How long it must be calm.  Chosen: ten times the memory of demand.
  static constexpr Duration kCalm = std::chrono::seconds(10);
  // After which time without a change a lower level is tried.  Chosen: six
  // short overloads in an hour are the price of a wrong memory.
  static constexpr Duration kTrial = std::chrono::minutes(10);
  // Demand below this share of the former capacity fits without the level.
  // Source: docs/algorithms/law.md; an overload ends there too.
  static constexpr double kFits = .9;

  // Each level's excess, in order, at least 1; 0 ends them.
  using Levels = std::array<double, kMaxLevels>;
  struct Load {
    bool overloaded = false;  // The excess is being shed.
    double demand = 0;        // Requests per second.
    double capacity = 0;      // The same; 0: not known, then nothing rises.
  };

  // The level from now on, [0, number of levels].  If `now` steps back, no
  // time has passed.
  uint8_t Step(const Levels& levels, const Load& load, Instant now);

  uint8_t level() const { return level_; }

 private:
  uint8_t level_ = 0;
  double excess_ = 0;  // e above.
  // Capacity when the level above was taken, by the level left.
  std::array<double, kMaxLevels> capacity_{};
  Instant stepped_{};
  Instant changed_{};
  Instant calm_since_ = kNever;
  Instant fits_since_ = kNever;
};

}  // namespace weir

#endif  // WEIR_DEGRADE_LADDER_H_
