// Cinnamon: Uber's shedder: a PI controller for the share to refuse, and the
// distribution of recent priorities to say who that is.
//
// Every 500 ms, with what was let in and what started since, and the slots of
// the limit that are free now:
//
//   error = (in - (out + free)) / out
//   share = .1 * error + 1.4 * sum of error * .5 s, in [0, 1]
//
// The cut is that quantile of the last 1000 priorities; a priority is a tier
// (the criticality) and one of 128 cohorts (a hash of the client).  A request
// that has waited a third of its patience is refused at its start.  The limit
// is tuned as FailsafeLimiter does, which descends from Cinnamon's own.
//
// Source: [CINNAMON2023], three parts, known from summaries: gains, period and
// the error's form are recalled, not read; the integral is clamped to what the
// share can use (chosen).  Left out: how Cinnamon decides that it is at rest
// (here: an error that never exceeds 0), and its exact priority queue, for
// which the simulator's own stands in.

#ifndef WEIR_RIVALS_CINNAMON_H_
#define WEIR_RIVALS_CINNAMON_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/rivals/failsafe_limiter.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class Cinnamon final : public Limiter,
                       public Gate,
                       public Taker,
                       public Learner {
 public:
  struct Config {
    FailsafeLimiter::Config limiter{};
    Duration period = std::chrono::milliseconds(500);
    double proportional = 0.1;
    double integral = 1.4;  // Per second.
    double patience_share = 1.0 / 3;
  };

  explicit Cinnamon(const Config& config)
      : config_(config), limiter_(config.limiter) {}

  int32_t Limit(Instant now) override { return limiter_.Limit(now); }
  bool Admit(const Arrival& arrival) override;
  bool Take(const Start& start) override;
  void Learn(const Finish& finish) override { limiter_.Learn(finish); }

  double refusal_ratio() const { return ratio_; }

 private:
  void EndPeriod(const Arrival& arrival);

  Config config_;
  FailsafeLimiter limiter_;
  std::vector<int32_t> priorities_;  // The last 1000; a ring.
  size_t next_priority_ = 0;
  int32_t threshold_ = 0;
  int64_t in_ = 0;
  int64_t out_ = 0;
  double integral_ = 0;
  double ratio_ = 0;
  Instant period_ends_{};
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_CINNAMON_H_
