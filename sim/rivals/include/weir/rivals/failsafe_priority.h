// FailsafePriority: failsafe-go's prioritized limiter: its adaptive limiter
// with a queue, and a level below which full means no.
//
// With q waiting and the limit at L, the share to refuse rises from 0 at
// q = 2L to 1 at q = 3L.  Every `period` that share becomes a level: the
// quantile of the last 1000 levels asked for.  While the limiter is full,
// requests below the level are refused.  A request's level is
// 100 * (its criticality) + U[0, 100).
//
// Source: [FAILSAFE-GO] queueinglimiter.go, priority/.  Deviations: the levels
// of one limiter only, quantiles exact; the place inside a criticality is
// random, not by the user's recent usage; `period`, which its user chooses, is
// 1 s (chosen: as long as the shortest window of the limiter).

#ifndef WEIR_RIVALS_FAILSAFE_PRIORITY_H_
#define WEIR_RIVALS_FAILSAFE_PRIORITY_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/rivals/failsafe_limiter.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class FailsafePriority final : public Limiter, public Gate, public Learner {
 public:
  struct Config {
    FailsafeLimiter::Config limiter{};
    double first_refusal_factor = 2.0;
    double full_refusal_factor = 3.0;
    Duration period = std::chrono::seconds(1);
  };

  explicit FailsafePriority(const Config& config)
      : config_(config), limiter_(config.limiter) {}

  int32_t Limit(Instant now) override { return limiter_.Limit(now); }
  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override { limiter_.Learn(finish); }

  // The share to refuse with `queued` waiting.
  static double RefusalRatio(int32_t queued, int32_t first, int32_t full);

  int32_t threshold() const { return threshold_; }

 private:
  void Calibrate(const Arrival& arrival);

  Config config_;
  FailsafeLimiter limiter_;
  std::vector<int32_t> levels_;  // The last 1000; a ring.
  size_t next_level_ = 0;
  int32_t threshold_ = 0;
  Instant calibrate_at_{};
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_FAILSAFE_PRIORITY_H_
