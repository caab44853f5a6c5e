// Finds the distribution of a scenario that is nearest to observed times.

#ifndef WEIR_CLI_TIME_FIT_H_
#define WEIR_CLI_TIME_FIT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::cli {

// Sums and a coarse histogram of times: fixed memory (2 KiB), O(1) to add.
class TimeSample {
 public:
  void Add(Duration time);
  void Add(const TimeSample& other);

  uint64_t count() const { return count_; }
  double mean() const;  // In seconds, as all that follows.
  double cv2() const;   // Variance over the square of the mean.
  // The two points and the share of the upper one that have the sample's first
  // three moments.  False: there are none above zero.
  bool TwoPoints(double& lower, double& upper, double& upper_ratio) const;
  // Off by 2 % at most, as buckets are 1/16 of an octave; `ratio` in (0, 1).
  double Quantile(double ratio) const;

 private:
  static constexpr int kPerOctave = 16;
  static constexpr double kLowest = 1e-6;  // What is below counts as that.
  static constexpr size_t kBuckets = 34 * kPerOctave;  // Up to 4.7 hours.

  std::vector<uint32_t> buckets_;
  uint64_t count_ = 0;
  double sum_ = 0;
  double sum2_ = 0;
  double sum3_ = 0;
};

struct TimeFit {
  scenario::Span span;
  // Mean distance of the quantiles of the two, over the mean: 0.05 says that a
  // time is off by 5 % of the mean on average.  What the histogram itself is
  // off by (2 %) is in it.
  double distance = 0;
  double cv2 = 0;  // Of the sample.
};

// Of those distributions whose mean and cv2 are the sample's (cv2 up to 10 %,
// where the distribution fixes it) the nearest; of equally near ones the
// simplest.  `sample` must not be empty.
TimeFit FitTimes(const TimeSample& sample);

// Time of the fit that `ratio` of the requests stay below, in seconds.
double FitQuantile(const scenario::Span& span, double ratio);

// The exponent in [0, 3] with which two requests of `clients` Zipf-weighted
// clients come from the same one with probability `collision`.  0 when that is
// no more than chance.
double FitZipf(uint64_t clients, double collision);

// Share of the requests of the first of `clients` clients.
double TopShare(uint64_t clients, double zipf);

}  // namespace weir::cli

#endif  // WEIR_CLI_TIME_FIT_H_
