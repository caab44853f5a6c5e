// SreThrottle: the client side throttle of the SRE book.
//
//   p = max(0, (requests - K * accepts) / (requests + 1))
//
// over the last two minutes, for each criticality apart.  `requests` are all
// that the application wanted to send, those refused here included; `accepts`
// are those that the server took, whatever became of them.  One instance
// belongs to one caller.
//
// Source: [SRE2016] chapter 21, equation 21-1, K = 2; `least_requests` and the
// shorter window are those of [AEGIS] (K = 1 / .6, 100 requests, 3 s in 10
// slices).  Deviations: the history moves in slices of a second.

#ifndef WEIR_RIVALS_SRE_THROTTLE_H_
#define WEIR_RIVALS_SRE_THROTTLE_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "weir/rivals/bucket_window.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class SreThrottle final : public Gate, public Learner {
 public:
  struct Config {
    double k = 2.0;
    int64_t least_requests = 0;
    Duration window = std::chrono::minutes(2);
    int32_t slices = 120;
  };

  explicit SreThrottle(const Config& config);

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;

  static double RefusalRatio(double k, int64_t requests, int64_t accepts);

 private:
  Config config_;
  std::vector<BucketWindow> windows_;  // One per criticality.
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_SRE_THROTTLE_H_
