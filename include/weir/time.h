// Time as an argument: instants and durations of one monotonic timeline.
//
// Nothing that decides reads a clock.  Callers pass `now`; in production it
// comes from host::MonotonicClock, in a simulation from the event queue.

#ifndef WEIR_TIME_H_
#define WEIR_TIME_H_

#include <chrono>
#include <cstdint>

namespace weir {

using Duration = std::chrono::nanoseconds;

// A clock type with no now(): code that is handed a timeline cannot read one.
struct Timeline {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Timeline>;
  static constexpr bool is_steady = true;
};

// Nanoseconds since an arbitrary start.  All processes that share a Region
// must use the same start (CLOCK_MONOTONIC of one machine does).
using Instant = Timeline::time_point;

// Later than every instant that occurs: "no deadline".
inline constexpr Instant kNever = Instant::max();

constexpr double ToSeconds(Duration d) {
  return static_cast<double>(d.count()) * 1e-9;
}

// Rounds to the nearest nanosecond.  `seconds` must lie within +-292 years.
constexpr Duration FromSeconds(double seconds) {
  return Duration(
      static_cast<int64_t>(seconds * 1e9 + (seconds < 0 ? -.5 : .5)));
}

}  // namespace weir

#endif  // WEIR_TIME_H_
