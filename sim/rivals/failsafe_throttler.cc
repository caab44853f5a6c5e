#include "weir/rivals/failsafe_throttler.h"

#include <algorithm>

#include "weir/splitmix64.h"

namespace weir::rivals {

FailsafeThrottler::FailsafeThrottler(const Config& config)
    : config_(config), window_(config.window / config.slices, config.slices) {}

double FailsafeThrottler::RefusalRatio(const Config& config, int64_t requests,
                                       int64_t successes) {
  if (requests < config.least_requests) return 0;
  const auto n = static_cast<double>(requests);
  const double tolerated = static_cast<double>(successes) / config.threshold;
  return std::clamp((n - tolerated) / (n + 1), 0.0, config.ceiling);
}

bool FailsafeThrottler::Admit(const Arrival& arrival) {
  const Tally& total = window_.Total(arrival.now);
  return ToUnit(arrival.draw) >= RefusalRatio(config_, total.count, total.hits);
}

void FailsafeThrottler::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome)) return;
  const int64_t success = finish.outcome == Outcome::kOk ? 1 : 0;
  window_.Add(finish.now, {.count = 1, .hits = success});
}

}  // namespace weir::rivals
