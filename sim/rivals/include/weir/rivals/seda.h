// Seda: SEDA's adaptive rate for a stage: a token bucket steered by the 90th
// percentile of response times.
//
//   every 100 responses or 1 s:  cur = .7 * cur + .3 * p90
//   err = (cur - target) / target
//   err > 0:    rate = rate / 1.2
//   err < -.5:  rate = rate - (err - -.1) * 2
//
// Source: [WELSH2003] section 4.2 and its table of parameters, whose values
// are recalled, not read again: 100 samples, 1 s, -.5, 0, 2.0, 1.2, -.1, .7
// and rates from .05 to 5000/s; the shape and .7, -.5, 0, -.1 agree with
// [BREAKWATER-CODE].  The target is the operator's.
// Deviations: the first rate is the highest, so that a rested stage is open;
// the bucket holds 100 ms' worth, at least one token (both chosen).

#ifndef WEIR_RIVALS_SEDA_H_
#define WEIR_RIVALS_SEDA_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class Seda final : public Gate, public Learner {
 public:
  struct Config {
    Duration target = std::chrono::milliseconds(250);
    size_t samples = 100;
    Duration period = std::chrono::seconds(1);
    double smoothing = 0.7;  // Weight of the past.
    double quantile = 0.9;
    double increase_below = -0.5;
    double increase_offset = -0.1;
    double increase = 2.0;
    double decrease = 1.2;
    double lowest_rate = 0.05;  // Per second.
    double highest_rate = 5000;
  };

  explicit Seda(const Config& config)
      : config_(config), rate_(config.highest_rate) {}

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;

  double rate() const { return rate_; }

 private:
  void Adjust(Instant now);

  Config config_;
  double rate_;
  double tokens_ = 1;
  Instant refilled_{};
  std::vector<int64_t> responses_;
  double current_ns_ = 0;
  Instant adjusted_{};
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_SEDA_H_
