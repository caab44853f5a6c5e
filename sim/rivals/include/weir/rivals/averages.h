// Small statistics that several controllers share.

#ifndef WEIR_RIVALS_AVERAGES_H_
#define WEIR_RIVALS_AVERAGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::rivals {

// floor(log10(n)), at least 1: the step function of the Vegas family.
// n <= 99 gives 1.
int32_t Log10AtLeastOne(int32_t n);

// The `quantile`-th smallest of `values` by nearest rank: index
// ceil(quantile * n) - 1, the first one for quantile 0.  Reorders `values`,
// which must not be empty.
int64_t NearestRank(std::vector<int64_t>& values, double quantile);

// The plain mean of the first `warm_up` samples, then an exponential average
// with factor 2 / (window + 1).
class WarmedAverage {
 public:
  WarmedAverage(int32_t window, int32_t warm_up)
      : factor_(2.0 / (window + 1)), warm_up_(warm_up) {}

  double Add(double sample);
  double value() const { return value_; }
  // Multiplies the average; the samples before lose weight likewise.
  void Scale(double ratio) { value_ *= ratio; }

 private:
  double factor_;
  int32_t warm_up_;
  int32_t count_ = 0;
  double sum_ = 0;
  double value_ = 0;
};

// The median of the last `size` samples.  Until there are so many, Add()
// returns its argument and value() is 0.
class MovingMedian {
 public:
  explicit MovingMedian(size_t size) : size_(size) {}

  double Add(double sample);
  double value() const { return value_; }

 private:
  size_t size_;
  size_t next_ = 0;
  std::vector<double> samples_;
  double value_ = 0;
};

// Pearson's correlation of the last `size` pairs.
class CorrelationWindow {
 public:
  struct State {
    double correlation = 0;
    double y_cv = 0;  // sd / mean of y.
  };

  CorrelationWindow(size_t size, size_t warm_up)
      : size_(size), warm_up_(warm_up) {}

  // All 0 while there are fewer pairs than the warm-up; correlation 0 while x
  // or y varies by less than 1 % of its mean.
  State Add(double x, double y);

 private:
  struct Pair {
    double x;
    double y;
  };
  size_t size_;
  size_t warm_up_;
  size_t next_ = 0;
  std::vector<Pair> pairs_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_AVERAGES_H_
