// SentinelSystem: the system rule of Sentinel (Java), bit for bit.
//
// In this order it refuses when
//   passed in the window + 1 > qps;   inflight > threads;
//   mean latency > mean_latency_ms;
//   load1 > load, and inflight > 1, and
//       inflight > best completions per second * least latency / 1000;
//   cpu > cpu (with no such check).
//
// The window is 1 s in two aligned halves, the current partial one included:
// "best" is the fuller half's count (at least 1) times two, "least" the
// smallest single latency in ms, at most 5000 and at least 1.  Inflight is
// read before the request itself counts, so threads + 1 pass.  Load and CPU
// are sampled once a second; load below 0 is unknown.
//
// Source: [SENTINEL] SystemRuleManager.java and its statistic nodes at d75a668.
// All quirks kept: one window for all requests, failures count as
// completions, latencies are differences of whole milliseconds.
// Deviations: check and count are one step, so racing threads cannot overshoot.

#ifndef WEIR_RIVALS_SENTINEL_SYSTEM_H_
#define WEIR_RIVALS_SENTINEL_SYSTEM_H_

#include <chrono>
#include <cstdint>
#include <limits>

#include "weir/rivals/bucket_window.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class SentinelSystem final : public Gate, public Learner, public Watcher {
 public:
  // Thresholds; infinity leaves an arm out.
  struct Config {
    static constexpr double kOff = std::numeric_limits<double>::infinity();
    double qps = kOff;
    double threads = kOff;
    double mean_latency_ms = kOff;
    double load1 = kOff;
    double cpu_ratio = kOff;
  };

  explicit SentinelSystem(const Config& config);

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;
  void Watch(const Signals& signals) override;
  Duration period() const override { return std::chrono::seconds(1); }

  double BestQps(Instant now);
  int64_t LeastLatencyMs(Instant now);
  double MeanLatencyMs(Instant now);

 private:
  bool Passes(const Arrival& arrival);

  Config config_;
  BucketWindow passed_;     // count.
  BucketWindow completed_;  // count; sum and least in ms.
  double load1_ = -1;
  double cpu_ratio_ = -1;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_SENTINEL_SYSTEM_H_
