// What the stages level and limit go by, without doing anything about it: the
// guard acts on these answers, and `weir explain` tells them.

#ifndef WEIR_CAPACITY_LOOK_H_
#define WEIR_CAPACITY_LOOK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/request.h"
#include "weir/time.h"

namespace weir {

// How much is to be said for running a request when there is too little room:
// its class first, and within it how little its client has used.
class Level {
 public:
  constexpr Level(Criticality criticality, uint8_t usage)
      : value_(kPerClass * (kClasses - 1 - Index(criticality)) + kPerClass - 1 -
               usage) {}

  // The highest that a class has: that of clients which have used nothing.
  static constexpr Level HighestOf(Criticality criticality) {
    return {criticality, 0};
  }

  // As the region keeps it, Flags::level; never 0, which says that nothing was
  // shed.
  constexpr int64_t value() const { return value_; }
  // The class of a kept one; nothing when nothing was shed.
  static constexpr std::optional<Criticality> ClassOf(int64_t value) {
    if (value < 1) return std::nullopt;
    return static_cast<Criticality>(
        std::max<int64_t>(kClasses - 1 - value / kPerClass, 0));
  }

 private:
  static constexpr int64_t kClasses = static_cast<int64_t>(kCriticalities);
  static constexpr int64_t kPerClass = 128;  // Above FairUsage::kMaxLevel.
  static constexpr int64_t Index(Criticality criticality) {
    return static_cast<int64_t>(criticality);
  }

  int64_t value_;
};

// When as many wait as may, and the least critical of them are of class `least`
// and of `worst` rank at most: whether a newcomer is refused, instead of one of
// those being pushed out.  Among equals the newcomer stays, since the older one
// has less time left; but not while only the limit is short, when all that wait
// will run.
constexpr bool IsLeastWanted(size_t own, uint8_t rank, size_t least,
                             uint8_t worst, bool overloaded) {
  if (least != own) return least < own;
  return !overloaded || rank > worst;
}

// After what time a request that level or limit refuses is likely to find room.
// It grows with the excess of demand: at ten times the capacity nine seconds,
// so that what comes back is about one second's worth of it.  Chosen; at most
// half a minute.  Zero while the capacity is not known.
inline Duration RetryAfterFor(int64_t queued, double capacity, double demand) {
  constexpr double kRetryPerExcess = 1;  // s
  constexpr double kLongestRetry = 30;   // s
  if (capacity <= 0) return {};
  const double wait = static_cast<double>(queued) / capacity;
  const double excess = std::max(0., demand / capacity - 1);
  return FromSeconds(std::min(kLongestRetry, wait + kRetryPerExcess * excess));
}

}  // namespace weir

#endif  // WEIR_CAPACITY_LOOK_H_
