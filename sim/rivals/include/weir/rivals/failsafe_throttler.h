// FailsafeThrottler: failsafe-go's adaptive throttler, refusals at random in
// proportion to the failures of the last minute.
//
//   p = min(ceiling, (n - successes / threshold) / (n + 1))
//
// and 0 below `least_requests`.  What it refuses is not counted.
//
// Source: [FAILSAFE-GO] adaptivethrottler, its defaults: threshold .9, ceiling
// .9, 1 min in 20 slices.  Deviations: no shared prioritizer.

#ifndef WEIR_RIVALS_FAILSAFE_THROTTLER_H_
#define WEIR_RIVALS_FAILSAFE_THROTTLER_H_

#include <chrono>
#include <cstdint>

#include "weir/rivals/bucket_window.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class FailsafeThrottler final : public Gate, public Learner {
 public:
  struct Config {
    double threshold = 0.9;  // Success rate below which it starts.
    double ceiling = 0.9;
    int64_t least_requests = 0;
    Duration window = std::chrono::minutes(1);
    int32_t slices = 20;
  };

  explicit FailsafeThrottler(const Config& config);

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;

  static double RefusalRatio(const Config& config, int64_t requests,
                             int64_t successes);

 private:
  Config config_;
  BucketWindow window_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_FAILSAFE_THROTTLER_H_
