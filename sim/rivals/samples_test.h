// What the tests of this folder share: requests on a virtual timeline.

#ifndef WEIR_SIM_RIVALS_SAMPLES_TEST_H_
#define WEIR_SIM_RIVALS_SAMPLES_TEST_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

using namespace std::chrono_literals;  // NOLINT: only in tests.

// Late enough that an hour ago is still on the timeline.
inline constexpr Instant kStart = Instant(std::chrono::hours(2));

// Feeds `count` samples of one latency, inflight being the limit in force or
// `inflight`, `spacing` apart; returns the limit after each.
template <typename Law>
std::vector<int> Feed(Law& law, int count, Duration latency, int inflight = -1,
                      Outcome outcome = Outcome::kOk) {
  std::vector<int> limits;
  for (int i = 0; i < count; ++i) {
    const int running = inflight < 0 ? law.Limit(kStart) : inflight;
    law.Learn({.now = kStart + latency,
               .latency = latency,
               .inflight_at_start = running,
               .inflight = running,
               .outcome = outcome});
    limits.push_back(law.Limit(kStart));
  }
  return limits;
}

inline std::vector<int> Repeated(int value, int count) {
  return std::vector<int>(static_cast<size_t>(count), value);
}

}  // namespace weir::rivals

#endif  // WEIR_SIM_RIVALS_SAMPLES_TEST_H_
