// SentinelSystem: the system rule of Sentinel (Java), bit for bit, and weir's
// `robust` variant of it.  The rule itself is weir's own system stage, which
// says what it does: weir/rate/system_rule.h.
//
// Load and CPU are sampled once a second, by the robust one each 100 ms; load
// below 0 is unknown.
//
// Source: [SENTINEL] SystemRuleManager.java and its statistic nodes at d75a668.
// All quirks kept: one window for all requests, failures count as
// completions, latencies are differences of whole milliseconds.
// Deviations: check and count are one step, so racing threads cannot overshoot.

#ifndef WEIR_RIVALS_SENTINEL_SYSTEM_H_
#define WEIR_RIVALS_SENTINEL_SYSTEM_H_

#include <chrono>
#include <limits>

#include "weir/rate/system_rule.h"
#include "weir/rivals/rival.h"
#include "weir/signal/recent_load.h"
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
    bool robust = false;
  };

  explicit SentinelSystem(const Config& config);

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;
  void Watch(const Signals& signals) override;
  Duration period() const override {
    return std::chrono::milliseconds(rule_config_.robust ? 100 : 1000);
  }

  double BestQps(Instant now) const;
  double LeastLatencyMs(Instant now) const;

 private:
  SystemRule::Config rule_config_;
  SystemRule rule_;
  SystemRule::Signals signals_;
  RecentLoad recent_load_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_SENTINEL_SYSTEM_H_
