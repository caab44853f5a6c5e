// FailsafeLimiter: failsafe-go's adaptive limiter, a slow Vegas with a look at
// throughput.
//
//   recent   = average(5) of median(5) of the window's p90
//   baseline = average(10) of recent
//   queue    = ceil(limit * (1 - baseline / recent))
//
// It decreases by s = max(1, floor(log10(limit))) when queue > 6s, or when the
// limit is used up and, over the last 50 windows, throughput falls as inflight
// rises, or barely follows it while latency does.  It increases by s when
// queue < 3s.  A limit above `ceiling_factor` times the largest inflight of
// the window falls by s.  A window needs 1 s (or twice the least latency, to
// 30 s) and 50 samples, so a limit moves once a second at best.
//
// Source: [FAILSAFE-GO] adaptivelimiter.go, its defaults; throughput there is
// inflight / recent latency, not a count of completions.  MostLimit() and the
// stabilization window as its tests state them.
// Deviations: quantiles are exact, not a t-digest's; correlations are summed
// anew instead of incrementally.

#ifndef WEIR_RIVALS_FAILSAFE_LIMITER_H_
#define WEIR_RIVALS_FAILSAFE_LIMITER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "weir/rivals/averages.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class FailsafeLimiter final : public Limiter, public Learner {
 public:
  struct Config {
    int32_t initial = 20;
    int32_t floor = 1;
    int32_t ceiling = 200;
    Duration window_floor = std::chrono::seconds(1);
    Duration window_ceiling = std::chrono::seconds(30);
    size_t least_samples = 50;
    double quantile = 0.9;
    int32_t baseline_age = 10;
    size_t correlation_window = 50;
    // The limit stays below inflight * factor, the factor being
    // ceiling_factor - factor_decay * log10(inflight), at least factor_floor.
    double ceiling_factor = 5.0;
    double factor_decay = 0.0;
    double factor_floor = 1.0;
    // The largest inflight of this long is what counts; zero: of one window.
    Duration stabilization{};
  };

  explicit FailsafeLimiter(const Config& config);

  int32_t Limit(Instant) override { return static_cast<int32_t>(limit_); }
  void Learn(const Finish& finish) override;

  static double MostLimit(const Config& config, int32_t inflight);

  // As if `count` windows of that latency had passed.
  void WarmBaseline(Duration latency, int32_t count);
  double recent_latency_ns() const { return recent_.value(); }
  double median_latency_ns() const { return median_.value(); }

 private:
  enum class Change { kIncrease, kDecrease, kHold };
  void EndWindow(Instant now, bool full);
  void Move(double recent, int32_t inflight, int32_t stable, bool full);
  Change Decide(double recent, double baseline, int32_t inflight, bool full);
  int32_t LargestLately(Instant now, int32_t inflight);

  Config config_;
  double limit_;
  std::vector<int64_t> latencies_;
  int32_t largest_inflight_ = 0;
  std::optional<Instant> ends_at_;
  MovingMedian median_;
  WarmedAverage recent_;
  WarmedAverage baseline_;
  CorrelationWindow throughput_;
  CorrelationWindow latency_;
  struct Peak {
    Instant at;
    int32_t inflight;
  };
  std::deque<Peak> peaks_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_FAILSAFE_LIMITER_H_
