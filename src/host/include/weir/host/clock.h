// The clock that production hands to everything that decides.

#ifndef WEIR_HOST_CLOCK_H_
#define WEIR_HOST_CLOCK_H_

#include <time.h>

#include "weir/time.h"

namespace weir::host {

struct MonotonicClock {
  // CLOCK_MONOTONIC: never steps back, is slewed but not stepped by NTP, stands
  // still while the machine sleeps, and is the same in all processes of one
  // kernel (except inside a time namespace, which has an offset of its own).
  // Read through the vDSO: no system call, any thread.  The coarse clock would
  // be cheaper, but its 4 ms steps are longer than many a request.
  static Instant Now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return Instant(std::chrono::seconds(t.tv_sec) +
                   std::chrono::nanoseconds(t.tv_nsec));
  }
};

}  // namespace weir::host

#endif  // WEIR_HOST_CLOCK_H_
