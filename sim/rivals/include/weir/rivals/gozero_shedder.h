// GozeroShedder: go-zero's adaptive shedder.
//
//   most = max(1, best passes per bucket * least latency in ms
//                 * buckets per second / 1000) * factor
//   factor = clamp((1000 - cpu) / (1000 - threshold), .1, 1), cpu in permille
//
// It refuses when both the inflight and its average (.9/.1, at each end of a
// request) exceed `most`, while CPU >= 90 % or was so within the last second
// and something was refused since.  5 s in 50 buckets, the current one left
// out; a bucket's latency is its rounded mean, 1000 ms when there is none.
// CPU is an average with factor .05 every 250 ms.
//
// Source: [GO-ZERO] core/load/adaptiveshedder.go, its defaults; only successes
// teach, a failed request only moves the average inflight.  Deviations:
// buckets are aligned to the timeline's zero.

#ifndef WEIR_RIVALS_GOZERO_SHEDDER_H_
#define WEIR_RIVALS_GOZERO_SHEDDER_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/rivals/bucket_window.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class GozeroShedder final : public Gate, public Learner, public Watcher {
 public:
  struct Config {
    Duration window = std::chrono::seconds(5);
    int32_t buckets = 50;
    int32_t cpu_threshold_permille = 900;
  };

  explicit GozeroShedder(const Config& config);

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;
  void Watch(const Signals& signals) override;
  Duration period() const override { return std::chrono::milliseconds(250); }

  int64_t BestPasses(Instant now);
  double LeastLatencyMs(Instant now);
  double MostInflight(Instant now);
  double average_inflight() const { return average_inflight_; }
  void set_cpu_permille(int64_t cpu) { cpu_permille_ = cpu; }

 private:
  bool Hot(Instant now);
  double OverloadFactor() const;

  Config config_;
  Duration bucket_;
  BucketWindow window_;  // count, and sum in ms.
  double average_inflight_ = 0;
  int64_t cpu_permille_ = 0;
  std::optional<Instant> overloaded_at_;
  bool refused_lately_ = false;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_GOZERO_SHEDDER_H_
