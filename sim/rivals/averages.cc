#include "weir/rivals/averages.h"

#include <algorithm>
#include <cmath>

namespace weir::rivals {

int32_t Log10AtLeastOne(int32_t n) {
  int32_t log = 0;
  for (; n >= 10; n /= 10) ++log;
  return std::max(log, 1);
}

int64_t NearestRank(std::vector<int64_t>& values, double quantile) {
  const auto n = static_cast<double>(values.size());
  const double rank = std::clamp(std::ceil(quantile * n), 1.0, n);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

double WarmedAverage::Add(double sample) {
  if (count_ < warm_up_) {
    ++count_;
    sum_ += sample;
    value_ = sum_ / count_;
  } else {
    value_ = value_ * (1 - factor_) + sample * factor_;
  }
  return value_;
}

double MovingMedian::Add(double sample) {
  if (samples_.size() < size_) {
    samples_.push_back(sample);
  } else {
    samples_[next_] = sample;
    next_ = (next_ + 1) % size_;
  }
  if (samples_.size() < size_) return sample;
  std::vector<double> sorted = samples_;
  std::sort(sorted.begin(), sorted.end());
  value_ = sorted[size_ / 2];
  return value_;
}

CorrelationWindow::State CorrelationWindow::Add(double x, double y) {
  if (pairs_.size() < size_) {
    pairs_.push_back({x, y});
  } else {
    pairs_[next_] = {x, y};
    next_ = (next_ + 1) % size_;
  }
  if (pairs_.size() < std::max<size_t>(warm_up_, 2)) return {};

  const auto n = static_cast<double>(pairs_.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const Pair& pair : pairs_) {
    mean_x += pair.x / n;
    mean_y += pair.y / n;
  }
  double var_x = 0;
  double var_y = 0;
  double covariance = 0;
  for (const Pair& pair : pairs_) {
    var_x += (pair.x - mean_x) * (pair.x - mean_x) / n;
    var_y += (pair.y - mean_y) * (pair.y - mean_y) / n;
    covariance += (pair.x - mean_x) * (pair.y - mean_y) / n;
  }
  if (mean_x == 0 || mean_y == 0) return {};
  constexpr double kLeastCv = 0.01;
  State state{.correlation = 0, .y_cv = std::sqrt(var_y) / mean_y};
  if (std::sqrt(var_x) / mean_x < kLeastCv || state.y_cv < kLeastCv) {
    return state;
  }
  state.correlation = covariance / (std::sqrt(var_x) * std::sqrt(var_y));
  return state;
}

}  // namespace weir::rivals
