// EnvoyGradient: the gradient controller of Envoy's adaptive concurrency.
//
//   gradient = clamp(least * (1 + buffer) / sample, .5, 2)
//   limit'   = int(limit * gradient + sqrt(limit * gradient)), clamped
//
// `sample` is a quantile of the latencies of one update interval.  `least` is
// the same quantile of 50 latencies taken while the limit is pinned to its
// floor: at the start, every `least_interval` plus jitter, and at once when
// five windows in a row set the limit to the floor.  The former limit comes
// back after the measurement; requests that started before it do not count.
//
// Source: [ENVOY-AC]; defaults of its v3 configuration, whose intervals are
// required fields and taken from its documentation's example.
// Deviations: quantiles are exact (nearest rank), not those of a log-linear
// histogram; timers are caught up with at the next event, which cannot be
// told apart, as nothing is decided in between.

#ifndef WEIR_RIVALS_ENVOY_GRADIENT_H_
#define WEIR_RIVALS_ENVOY_GRADIENT_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "weir/rivals/rival.h"
#include "weir/splitmix64.h"
#include "weir/time.h"

namespace weir::rivals {

class EnvoyGradient final : public Limiter, public Learner {
 public:
  struct Config {
    int32_t floor = 3;  // Also the limit while the least latency is measured.
    int32_t ceiling = 1000;
    double quantile = 0.5;
    double buffer = 0.25;
    Duration update_interval = std::chrono::milliseconds(100);
    Duration least_interval = std::chrono::seconds(60);
    size_t least_samples = 50;
    double jitter = 0.15;  // Share of least_interval added at most.
    uint64_t seed = 0;
  };

  explicit EnvoyGradient(const Config& config);

  int32_t Limit(Instant now) override;
  void Learn(const Finish& finish) override;

  // The next limit from these; the formula above.
  static int32_t NextLimit(const Config& config, int32_t limit, Duration least,
                           Duration sample);
  // interval + (draw mod interval * ratio), in whole milliseconds.
  static Duration Jittered(Duration interval, double ratio, uint64_t draw);

  Duration least_latency() const { return least_; }
  bool measuring() const { return measuring_; }

 private:
  void CatchUp(Instant now);
  void Measure(Instant from);
  void EndMeasurement(Instant now);
  void EndWindow(Instant at);
  Duration TakeSample();

  Config config_;
  SplitMix64 random_;
  int32_t limit_;
  bool started_ = false;
  bool measuring_ = false;
  int32_t limit_before_;  // Put back when the measurement ends.
  Instant epoch_{};       // Start of the latest measurement.
  Duration least_{};
  Instant window_ends_{};
  Instant measure_at_ = kNever;
  int32_t windows_at_floor_ = 0;
  std::vector<int64_t> latencies_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_ENVOY_GRADIENT_H_
