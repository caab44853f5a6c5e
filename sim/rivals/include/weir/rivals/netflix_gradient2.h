// NetflixGradient2: latency now against its own long average.
//
//   gradient = clamp(tolerance * long / latency, .5, 1)
//   limit'   = (1 - s) * limit + s * (limit * gradient + queue)
//
// It holds while fewer than half of the limit were running; the long average
// falls by 5 % whenever it is above twice the latency.  Drops are ignored, so
// a dependency that times out evenly raises the limit to its ceiling.
//
// Source: [NETFLIX-CL] Gradient2Limit, its defaults.  As there, the gradient
// uses the long average from before that fall.  Deviations: none;
// `long_decay` is a parameter because a port in Go [GO-CL] uses another.

#ifndef WEIR_RIVALS_NETFLIX_GRADIENT2_H_
#define WEIR_RIVALS_NETFLIX_GRADIENT2_H_

#include <cstdint>

#include "weir/rivals/averages.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class NetflixGradient2 final : public Limiter, public Learner {
 public:
  struct Config {
    int32_t initial = 20;
    int32_t floor = 20;
    int32_t ceiling = 200;
    double smoothing = 0.2;
    int32_t queue = 4;
    int32_t long_window = 600;  // Samples.
    double tolerance = 1.5;
    double long_decay = 0.95;
  };

  explicit NetflixGradient2(const Config& config);

  int32_t Limit(Instant) override { return static_cast<int32_t>(limit_); }
  void Learn(const Finish& finish) override;

 private:
  Config config_;
  double limit_;
  WarmedAverage long_latency_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_NETFLIX_GRADIENT2_H_
