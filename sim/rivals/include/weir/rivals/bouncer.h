// Bouncer: LinkedIn's admission by predicted percentiles.
//
//   wait = queued * mean processing time / processors
//   refuse when wait + p50 of its kind > SLO of p50
//            or wait + p90 of its kind > SLO of p90
//
// with p50 and p90 of processing times, each kind apart.  One request in a
// hundred passes regardless, so that a refused kind is still measured.
//
// Source: [XU2024], abstract read, formula recalled.  The mean is over the
// present mix of kinds, where the paper sums queued requests kind by kind: the
// two agree while the queue has the mix of what ran lately.  Left out: help
// for the underserved.  Deviations: percentiles are of the last 512 requests
// of the kind, taken anew every 64; the allowance is 1 % (chosen).

#ifndef WEIR_RIVALS_BOUNCER_H_
#define WEIR_RIVALS_BOUNCER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class Bouncer final : public Gate, public Learner {
 public:
  struct Config {
    int32_t processors = 16;
    Duration slo_p50 = std::chrono::milliseconds(125);
    Duration slo_p90 = std::chrono::milliseconds(250);
    double allowance = 0.01;
  };

  explicit Bouncer(const Config& config) : config_(config) {}

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;

 private:
  struct Kind {
    std::vector<int64_t> latencies;  // A ring.
    int64_t count = 0;
    Duration p50{};
    Duration p90{};
  };

  Config config_;
  std::map<uint16_t, Kind> kinds_;
  double mean_ns_ = 0;  // Of all kinds, smoothed.
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_BOUNCER_H_
