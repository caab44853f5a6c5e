// BrpcAuto: brpc's "auto" limiter, Little's law on the best seen so far.
//
//   limit = least latency * best qps * (1 + explore)
//
// Least latency only falls (an average with factor .1); best qps rises at once
// and falls with factor .01.  `explore` gains .02 (to .3) while the latency is
// within 6 % of the least or qps is 6 % below the best, and else loses .02 (to
// .06).  A window without a success halves the limit.  Every 25 to 50 s the
// limit is cut to .9 of its base for twice the latency, then the least latency
// is learned anew: that refuses traffic.
//
// Source: [BRPC] auto_concurrency_limiter.cpp, its flags' defaults.  The floor
// is the number of worker threads, whose default is 9; a request is admitted
// while inflight with it does not exceed the limit.
// Deviations: the time of the next re-measuring comes from a seed.

#ifndef WEIR_RIVALS_BRPC_AUTO_H_
#define WEIR_RIVALS_BRPC_AUTO_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/rivals/brpc_window.h"
#include "weir/rivals/rival.h"
#include "weir/splitmix64.h"
#include "weir/time.h"

namespace weir::rivals {

class BrpcAuto final : public Limiter, public Learner {
 public:
  struct Config {
    BrpcWindow::Config window{};
    int32_t initial = 40;
    int32_t workers = 9;  // The floor.
    Duration remeasure_interval = std::chrono::seconds(50);
    uint64_t seed = 0;
  };

  explicit BrpcAuto(const Config& config);

  int32_t Limit(Instant) override { return limit_; }
  void Learn(const Finish& finish) override;

  double explore() const { return explore_; }
  // In microseconds; below 0 while none is known.
  int64_t least_latency_us() const { return least_us_; }

 private:
  void Update(const BrpcWindow::Summary& window, Instant now);
  void SetLimit(int32_t limit);
  Instant NextRemeasuring(Instant now);

  Config config_;
  SplitMix64 random_;
  BrpcWindow window_;
  int32_t limit_;
  double explore_;
  int64_t least_us_ = -1;
  double best_qps_ = -1;
  std::optional<Instant> remeasure_at_;  // Set by the first sample.
  std::optional<Instant> ignore_until_;  // While the limit is cut.
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_BRPC_AUTO_H_
