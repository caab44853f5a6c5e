// EnvoyRetryBudget: retries in flight up to a share of what is in flight.
//
// Source: [ENVOY-BUDGET] retry_budget of a cluster's circuit breakers: 20 % of
// the active requests, at least 3.  Deviation: a retry counts while it is in
// flight; Envoy also counts it while it backs off.

#ifndef WEIR_RIVALS_ENVOY_RETRY_BUDGET_H_
#define WEIR_RIVALS_ENVOY_RETRY_BUDGET_H_

#include <cstdint>

#include "weir/rivals/rival.h"

namespace weir::rivals {

class EnvoyRetryBudget final : public Gate, public Learner {
 public:
  struct Config {
    double budget_ratio = 0.2;
    int64_t least = 3;  // min_retry_concurrency
  };

  explicit EnvoyRetryBudget(const Config& config) : config_(config) {}

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;

 private:
  Config config_;
  int64_t active_ = 0;
  int64_t retries_ = 0;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_ENVOY_RETRY_BUDGET_H_
