// What a service that knew everything would have done with the same requests.

#ifndef WEIR_SCENARIO_IDEAL_H_
#define WEIR_SCENARIO_IDEAL_H_

#include <cstddef>
#include <vector>

#include "weir/time.h"

namespace weir::scenario {

// Length of a step of everything below.
// Chosen: well under the shortest burst (50 ms), long enough to hold several
// requests.
inline constexpr Duration kIdealStep = std::chrono::milliseconds(10);

struct Ideal {
  std::vector<double> served;  // Per step.
  std::vector<bool> overload;  // Per step: whether it must shed.
};

// Lets work flow: `offered` arrives and `capacity` is done per step, and what
// cannot be done at once waits for the steps after.
//
// Work may wait for `deadline`; when more waits than can be done in that time,
// the service is overloaded, from when the first of it began to wait until the
// last that is too much.  What waits at that last moment is not asked of
// anybody: only who keeps all callers waiting for their whole deadline could do
// it, and to keep queues short is the better service.  So a burst that fits
// into the deadline is to be served whole, and of a flood as much as capacity
// allows while it lasts.
//
// Both vectors have one entry per step, in any one unit.  O(steps).
Ideal ComputeIdeal(const std::vector<double>& offered,
                   const std::vector<double>& capacity, Duration deadline);

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_IDEAL_H_
