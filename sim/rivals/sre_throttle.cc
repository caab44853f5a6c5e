#include "weir/rivals/sre_throttle.h"

#include <algorithm>

#include "weir/splitmix64.h"

namespace weir::rivals {

SreThrottle::SreThrottle(const Config& config)
    : config_(config),
      windows_(kCriticalities,
               BucketWindow(config.window / config.slices, config.slices)) {}

double SreThrottle::RefusalRatio(double k, int64_t requests, int64_t accepts) {
  const auto n = static_cast<double>(requests);
  return std::max(0.0, (n - k * static_cast<double>(accepts)) / (n + 1));
}

bool SreThrottle::Admit(const Arrival& arrival) {
  BucketWindow& window = windows_[Index(arrival.criticality)];
  const Tally total = window.Total(arrival.now);
  window.Add(arrival.now, {.count = 1});
  if (total.count < config_.least_requests) return true;
  return ToUnit(arrival.draw) >=
         RefusalRatio(config_.k, total.count, total.hits);
}

void SreThrottle::Learn(const Finish& finish) {
  if (!finish.refused) {
    windows_[Index(finish.criticality)].Add(finish.now, {.hits = 1});
  }
}

}  // namespace weir::rivals
