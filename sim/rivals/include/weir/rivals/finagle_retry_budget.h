// FinagleRetryBudget: retries up to a share of the requests of the last ten
// seconds, and a few a second besides.
//
// Source: [FINAGLE] RetryBudget: 20 % and 10 retries a second, tokens live for
// 10 s, which is also how long a retry counts.

#ifndef WEIR_RIVALS_FINAGLE_RETRY_BUDGET_H_
#define WEIR_RIVALS_FINAGLE_RETRY_BUDGET_H_

#include <chrono>
#include <cstdint>

#include "weir/rivals/bucket_window.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class FinagleRetryBudget final : public Gate {
 public:
  struct Config {
    Duration ttl = std::chrono::seconds(10);
    double retry_ratio = 0.2;
    double least_per_second = 10;
  };

  explicit FinagleRetryBudget(const Config& config)
      : config_(config), window_(config.ttl / 10, 10) {}

  bool Admit(const Arrival& arrival) override;

 private:
  Config config_;
  BucketWindow window_;  // Requests, and retries as hits.
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_FINAGLE_RETRY_BUDGET_H_
