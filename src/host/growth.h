// Growth turns a total that only grows into growth per second.

#ifndef WEIR_HOST_GROWTH_H_
#define WEIR_HOST_GROWTH_H_

#include <optional>

#include "weir/host/reading.h"
#include "weir/time.h"

namespace weir::host {

// b - a.  Right for every two instants less than 292 years apart, also where
// their count wraps around.
inline Duration Since(Instant a, Instant b) {
  const auto difference = static_cast<uint64_t>(b.time_since_epoch().count()) -
                          static_cast<uint64_t>(a.time_since_epoch().count());
  return Duration(static_cast<int64_t>(difference));
}

class Growth {
 public:
  // Seconds that `total` (at least zero) has grown by in each second since the
  // call before: for CPU time, the number of CPUs in use.  Pending at first,
  // when no time has passed, and when the clock or the total has gone back;
  // the next reading counts from here.
  Reading<double> Step(Instant now, Duration total) {
    if (!seen_) {
      seen_ = Seen{now, total};
      return Reading<double>::Pending("needs two readings");
    }
    const Duration elapsed = Since(seen_->at, now);
    if (elapsed == Duration::zero()) {
      return Reading<double>::Pending("no time has passed since the last one");
    }
    const Duration grown = total - seen_->total;
    seen_ = Seen{now, total};
    if (elapsed < Duration::zero()) {
      return Reading<double>::Pending("the clock went back");
    }
    if (grown < Duration::zero()) {
      return Reading<double>::Pending("the counter went back");
    }
    return ToSeconds(grown) / ToSeconds(elapsed);
  }

  // The total can be lost from sight: what comes next may be another one.
  void Reset() { seen_.reset(); }

 private:
  struct Seen {
    Instant at;
    Duration total;
  };
  std::optional<Seen> seen_;
};

}  // namespace weir::host

#endif  // WEIR_HOST_GROWTH_H_
