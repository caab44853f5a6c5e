// GoZeroBreaker: the client side throttle of go-zero.
//
//   p = (total - 5 - k * accepts) / (total + 1) * (1 - working / 40)
//
// over 10 s in 40 buckets.  k falls from 1.5 to 1.1 with the share of the
// newest buckets that saw only failures; `working` is how many of the newest
// saw only successes.  After a second without a pass the next one passes.
// What is refused here counts in the total.
//
// Source: [GO-ZERO] core/breaker/googlebreaker.go.  Deviations: none known.

#ifndef WEIR_RIVALS_GOZERO_BREAKER_H_
#define WEIR_RIVALS_GOZERO_BREAKER_H_

#include <chrono>
#include <cstdint>

#include "weir/rivals/bucket_window.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class GoZeroBreaker final : public Gate, public Learner {
 public:
  struct Config {
    double k = 1.5;
    double least_k = 1.1;
    int64_t protection = 5;
    Duration window = std::chrono::seconds(10);
    int32_t buckets = 40;
    Duration forced_pass = std::chrono::seconds(1);
  };

  explicit GoZeroBreaker(const Config& config)
      : config_(config),
        window_(config.window / config.buckets, config.buckets) {}

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;

 private:
  Config config_;
  BucketWindow window_;  // All, successes as hits, failures as sum.
  Instant last_pass_ = Instant::min();
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_GOZERO_BREAKER_H_
