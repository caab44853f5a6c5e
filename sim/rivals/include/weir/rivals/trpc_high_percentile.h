// TrpcHighPercentile: tRPC-Cpp's concurrency limit steered by scheduling
// delay, with a fuzzy cut between the priorities.
//
//   q       = measured / expected high delay (mean of the maxima of 30 samples,
//             three staggered groups, then an average with factor .1)
//   most    = max(10, least cost * best qps / (q <= 1 ? max(q, .5)
//                                                     : 1 + (q - 1) / 2))
//
// The limit acts once q > .9 and until q <= .5.  Least cost is an average with
// factor .01 up and .1 down, best qps .1 up and .01 down, over windows of 1 to
// 100 ms with 200 successes.
//
// A priority in [0, 255] plus U[0, 1) is refused below `lower`, may have twice
// the limit above `upper`, and the limit in between.  Every 100 ms or 512
// answers, `upper` moves by 1 % of the histogram of priorities so that a tenth
// of the granted stem from the middle, `lower` by 2 % so that half of the
// middle is granted.
//
// Source: [TRPC-CPP] overload_control/high_percentile and its priority
// adapter; quirks kept: both averages start at 0, and inflight may exceed the
// limit by one.  Criticalities map to 224, 160, 96, 32 (chosen: evenly spread).
// Deviations: a threshold moves along the histogram in real numbers, not in
// rounded counts; only the scheduling delay is watched, with 15 ms expected.

#ifndef WEIR_RIVALS_TRPC_HIGH_PERCENTILE_H_
#define WEIR_RIVALS_TRPC_HIGH_PERCENTILE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

// The mean of the largest of every 30 samples, smoothed.
class HighAverage {
 public:
  HighAverage();

  void Add(double sample);
  // Takes in what came since the last call.
  double Advance();

 private:
  struct Group {
    int32_t samples = 0;
    double largest = 0;
  };
  std::array<Group, 3> groups_;
  double sum_of_largest_ = 0;
  int32_t largest_count_ = 0;
  double value_ = 0;
};

// The fuzzy cut: where lower and upper stand.
class PriorityCut {
 public:
  static constexpr int32_t kPriorities = 256;
  enum class Band { kRefuse, kMay, kMust };

  PriorityCut();

  Band Classify(int32_t priority, double fuzz) const;
  void Count(int32_t priority, Band band, bool granted);
  // An answer went out, or a request was refused: perhaps move the thresholds.
  void Tick(Instant now);

  double lower() const { return lower_; }
  double upper() const { return upper_; }

 private:
  static constexpr size_t kHistograms = 3;
  struct Histogram {
    std::array<int32_t, kPriorities> counts;
    int32_t total;
  };
  static void Clear(Histogram& histogram);
  static double Shifted(const Histogram& histogram, double at, double share);
  void EndWindow(Instant now);

  // Overlapping windows: each sample goes into all, one is emptied at a time.
  std::array<Histogram, kHistograms> histograms_;
  size_t oldest_ = 0;
  double lower_ = 0;
  double upper_ = kPriorities;
  int64_t must_ = 0;
  int64_t may_ = 0;
  int64_t granted_ = 0;  // Of may_.
  Instant window_ends_{};
  Duration window_length_;
  int32_t ticks_ = 0;
  int32_t window_size_;
};

class TrpcHighPercentile final : public Gate, public Learner {
 public:
  struct Config {
    Duration expected_delay = std::chrono::milliseconds(15);
    int32_t least_window = 200;
    int32_t floor = 10;
  };

  explicit TrpcHighPercentile(const Config& config) : config_(config) {}

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;

  bool in_effect() const { return in_effect_; }
  int32_t most_inflight() const { return most_; }

 private:
  void EndWindow(Instant now);

  Config config_;
  PriorityCut cut_;
  HighAverage delay_;
  bool in_effect_ = false;
  int32_t most_ = 0;
  double least_cost_ms_ = 0;
  double best_qps_ = 0;
  Instant window_start_{};
  Duration window_length_ = std::chrono::milliseconds(1);
  int32_t window_size_ = 200;
  int32_t touches_ = 0;
  int64_t succeeded_ = 0;
  int64_t cost_ms_ = 0;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_TRPC_HIGH_PERCENTILE_H_
