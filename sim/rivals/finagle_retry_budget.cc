#include "weir/rivals/finagle_retry_budget.h"

namespace weir::rivals {

bool FinagleRetryBudget::Admit(const Arrival& arrival) {
  if (arrival.attempt == 0) {
    window_.Add(arrival.now, {.count = 1});
    return true;
  }
  const Tally& sums = window_.Total(arrival.now);
  const double reserve = config_.least_per_second * ToSeconds(config_.ttl);
  const double left = reserve +
                      config_.retry_ratio * static_cast<double>(sums.count) -
                      static_cast<double>(sums.hits);
  if (left < 1) return false;
  window_.Add(arrival.now, {.hits = 1});
  return true;
}

}  // namespace weir::rivals
