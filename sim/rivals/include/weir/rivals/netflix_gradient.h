// NetflixGradient: the first gradient limit, against the least latency seen.
//
//   gradient = clamp(tolerance * base / latency, .5, 1)
//   limit'   = limit * gradient + queue,  queue = max(4, floor(sqrt(limit)))
//   dropped: limit * .9;  fewer than limit / 2 running: hold
//
// A decrease is smoothed by .2, an increase is not.  Every 1000 to 2000
// samples the limit drops to `queue` and the base is forgotten: the probe
// refuses traffic.
//
// Source: [NETFLIX-CL] GradientLimit, its defaults.  Deviations: the probe's
// countdown comes from a seed; roots are taken without a table.

#ifndef WEIR_RIVALS_NETFLIX_GRADIENT_H_
#define WEIR_RIVALS_NETFLIX_GRADIENT_H_

#include <cstdint>

#include "weir/rivals/rival.h"
#include "weir/splitmix64.h"
#include "weir/time.h"

namespace weir::rivals {

// floor(sqrt(n)), at least `baseline`.
int32_t SquareRootAtLeast(int32_t n, int32_t baseline);

class NetflixGradient final : public Limiter, public Learner {
 public:
  struct Config {
    int32_t initial = 50;
    int32_t floor = 1;
    int32_t ceiling = 1000;
    double smoothing = 0.2;
    double tolerance = 2.0;
    double backoff = 0.9;
    int32_t queue_baseline = 4;
    int32_t probe_interval = 1000;  // Samples; 0: never.
    uint64_t seed = 0;
  };

  explicit NetflixGradient(const Config& config);

  int32_t Limit(Instant) override { return static_cast<int32_t>(limit_); }
  void Learn(const Finish& finish) override;

 private:
  int32_t NextCountdown();

  Config config_;
  SplitMix64 random_;
  double limit_;
  Duration base_{};  // Zero: none.
  int32_t countdown_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_NETFLIX_GRADIENT_H_
