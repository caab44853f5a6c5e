#include "weir/rivals/envoy_retry_budget.h"

#include <algorithm>

namespace weir::rivals {

bool EnvoyRetryBudget::Admit(const Arrival& arrival) {
  if (arrival.attempt > 0) {
    const auto allowed = static_cast<int64_t>(config_.budget_ratio *
                                              static_cast<double>(active_));
    if (retries_ >= std::max(allowed, config_.least)) return false;
    ++retries_;
  }
  ++active_;
  return true;
}

void EnvoyRetryBudget::Learn(const Finish& finish) {
  --active_;
  if (finish.attempt > 0) --retries_;
}

}  // namespace weir::rivals
