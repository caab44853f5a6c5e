#include "weir/degrade/ladder.h"

#include <algorithm>
#include <cmath>

namespace weir {
namespace {

// Memory of the smoothed excess.  Source: that of demand, LimitLaw.
constexpr double kMemory = 1;  // s
// An overload that is over for 0.7 s counts as calm.  Chosen: one that only
// pauses while a queue empties does not.
constexpr double kCalmExcess = .5;

void Note(bool so, Instant now, Instant& since) {
  since = so ? std::min(since, now) : kNever;
}

}  // namespace

uint8_t DegradeLadder::Step(const Levels& levels, const Load& load,
                            Instant now) {
  now = std::max(now, stepped_);
  // The first step has nothing before it.
  const double seconds = stepped_ == Instant{} ? 0 : ToSeconds(now - stepped_);
  stepped_ = now;
  const double x =
      load.overloaded && load.capacity > 0 ? load.demand / load.capacity : 0;
  excess_ += (x - excess_) * (1 - std::exp(-seconds / kMemory));
  // A policy may have taken levels away.
  const auto most = static_cast<uint8_t>(
      std::find(levels.begin(), levels.end(), 0) - levels.begin());
  level_ = std::min(level_, most);

  if (level_ < most && excess_ >= levels[level_] && now - changed_ >= kRise) {
    capacity_[level_++] = load.capacity;
    changed_ = now;
    calm_since_ = fits_since_ = kNever;
    return level_;
  }
  const bool calm = excess_ < kCalmExcess;
  Note(calm, now, calm_since_);
  Note(calm && level_ > 0 && load.demand < kFits * capacity_[level_ - 1], now,
       fits_since_);
  const bool fits = fits_since_ != kNever && now - fits_since_ >= kCalm;
  const bool trial = calm_since_ != kNever && now - calm_since_ >= kCalm &&
                     now - changed_ >= kTrial;
  if (level_ > 0 && (fits || trial)) {
    --level_;
    changed_ = now;
    calm_since_ = fits_since_ = kNever;
  }
  return level_;
}

}  // namespace weir
