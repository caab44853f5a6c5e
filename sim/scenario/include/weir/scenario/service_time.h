// SplitMix64 spans of time: service times, network delays.

#ifndef WEIR_SCENARIO_SERVICE_TIME_H_
#define WEIR_SCENARIO_SERVICE_TIME_H_

#include <cstdint>

#include "weir/scenario/random.h"
#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::scenario {

// One draw, rounded to the nanosecond.
Duration Draw(const Span& span, Random& random);

// The number of one attempt: attempt 0 is the request itself, n its n-th
// retry.  It travels in the header `weir-request`.
constexpr uint64_t AttemptNumber(uint64_t request, uint32_t attempt) {
  return request | (static_cast<uint64_t>(attempt) << 48);
}

// The time that attempt `number` spends in stage `stage` of tier `tier`, each
// counted from 0.  It depends on nothing else: whatever a limiter refuses, and
// in whatever order work arrives, the same attempt costs the same, in virtual
// time and for real.  Stages that see fewer than all requests draw alike.
Duration DrawFor(const Span& span, uint64_t seed, size_t tier, size_t stage,
                 uint64_t number);

// Whether attempt `number`, of route `route`, takes the stage at all.
bool Takes(const Stage& stage, uint16_t route, uint64_t seed, size_t tier,
           size_t index, uint64_t number);

// Why attempt `number`, of route `route`, fails when it begins at `at`; null:
// it does not.
const Failure* FailureOf(const Tier& tier, uint16_t route, uint64_t seed,
                         size_t index, uint64_t number, Duration at);

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_SERVICE_TIME_H_
