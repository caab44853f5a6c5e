// RecentLoad recovers what is runnable now from the kernel's load average.
//
// The kernel counts runnable threads every five seconds and averages them,
//
//   load' = load * d + runnable * (1 - d),   d = exp(-5 s / 60 s)
//
// so after a step it takes 42 s until the average has gone half of the way.
// Two averages in a row give the count back, five seconds old at most:
//
//   runnable = (load' - load * d) / (1 - d)
//
// Averages are read with two decimals, so the result is off by 0.12 at most.
// Source: Linux kernel/sched/loadavg.c, LOAD_FREQ and EXP_1.

#ifndef WEIR_SIGNAL_RECENT_LOAD_H_
#define WEIR_SIGNAL_RECENT_LOAD_H_

#include <algorithm>
#include <cmath>

#include "weir/time.h"

namespace weir {

// Not thread-safe.
class RecentLoad {
 public:
  static constexpr Duration kStep = std::chrono::seconds(5);
  static constexpr Duration kMemory = std::chrono::seconds(60);

  // Takes a reading of the one-minute average and returns what is runnable.
  // Readings may come as often as wanted, five seconds apart at most; after a
  // longer gap the mean over the gap is returned.
  double Add(double one_minute, Instant now) {
    if (!started_) {
      started_ = true;
      changed_ = now;
      average_ = runnable_ = one_minute;
      return runnable_;
    }
    const Duration since = now - changed_;
    // An average that stands still for longer than a step is a steady one.
    if (one_minute == average_ && since < 2 * kStep) return runnable_;
    const auto steps = std::max<int64_t>((since + kStep / 2) / kStep, 1);
    const double d = std::exp(-ToSeconds(steps * kStep) / ToSeconds(kMemory));
    runnable_ = std::max(0., (one_minute - average_ * d) / (1 - d));
    average_ = one_minute;
    changed_ = now;
    return runnable_;
  }

 private:
  bool started_ = false;
  Instant changed_{};
  double average_ = 0;
  double runnable_ = 0;
};

}  // namespace weir

#endif  // WEIR_SIGNAL_RECENT_LOAD_H_
