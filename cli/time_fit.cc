#include "time_fit.h"

#include <algorithm>
#include <cmath>

#include "weir/scenario/capacity.h"

namespace weir::cli {
namespace {

using scenario::Span;

// nginx writes milliseconds; a mean below one is known no better than this.
// Source: $request_time in ngx_http_log_module.  Chosen: the middle.
constexpr double kShortest = 0.5e-3;

// A time that spreads less than this is constant for every purpose here.
// Chosen: a deviation of 3 % of the mean, about what rounding to whole
// milliseconds makes of 10 ms.
constexpr double kConstantCv2 = 0.001;

// How far the cv2 of uniform and exponential times may be from the sample's:
// this, and what chance makes of it, which is about 2 / sqrt(count) for
// exponential times, twice.
constexpr double kCv2Error = 0.1;
double Cv2Error(const TimeSample& sample) {
  return kCv2Error + 4 / std::sqrt(static_cast<double>(sample.count()));
}

// Two distributions this near to each other are equally good, and the one with
// fewer parameters is taken.  Chosen: half of what the histogram is off by, and
// half a deviation of the mean of exponential times.
double SameDistance(const TimeSample& sample) {
  return 0.01 + .5 / std::sqrt(static_cast<double>(sample.count()));
}

// The value that a standard normal variable stays below with `ratio`, by
// bisection: fits are few.
double NormalQuantile(double ratio) {
  double low = -9;
  double high = 9;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.)) / 2 < ratio ? low : high) = middle;
  }
  return (low + high) / 2;
}

Duration Rounded(double seconds) {
  // Whole microseconds: a log knows no more, and files stay legible.
  const auto micros = static_cast<int64_t>(seconds * 1e6 + .5);
  return std::chrono::microseconds(std::max<int64_t>(micros, 1));
}

double Distance(const TimeSample& sample, const Span& span) {
  constexpr int kPoints = 400;
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double ratio = (i + .5) / kPoints;
    sum += std::abs(sample.Quantile(ratio) - FitQuantile(span, ratio));
  }
  return sum / kPoints / std::max(sample.mean(), kShortest);
}

// Sum of k^-exponent for k in [1, count]: exact up to a thousand, then the
// integral (midpoint rule), which is off by less than 1e-6 of it.
double Harmonic(uint64_t count, double exponent) {
  constexpr uint64_t kExact = 1000;
  double sum = 0;
  for (uint64_t k = 1; k <= std::min(count, kExact); ++k) {
    sum += std::pow(static_cast<double>(k), -exponent);
  }
  if (count <= kExact) return sum;
  const double from = kExact + .5;
  const double to = static_cast<double>(count) + .5;
  const double power = 1 - exponent;
  return sum + (std::abs(power) < 1e-9
                    ? std::log(to / from)
                    : (std::pow(to, power) - std::pow(from, power)) / power);
}

}  // namespace

void TimeSample::Add(Duration time) {
  if (buckets_.empty()) buckets_.resize(kBuckets);
  const double seconds = std::max(ToSeconds(time), 0.);
  const double octaves = std::log2(std::max(seconds, kLowest) / kLowest);
  const auto bucket = static_cast<size_t>(octaves * kPerOctave + 1e-6);
  ++buckets_[std::min(bucket, kBuckets - 1)];
  ++count_;
  sum_ += seconds;
  sum2_ += seconds * seconds;
  sum3_ += seconds * seconds * seconds;
}

void TimeSample::Add(const TimeSample& other) {
  if (buckets_.empty()) buckets_.resize(kBuckets);
  for (size_t i = 0; i < other.buckets_.size(); ++i) {
    buckets_[i] += other.buckets_[i];
  }
  count_ += other.count_;
  sum_ += other.sum_;
  sum2_ += other.sum2_;
  sum3_ += other.sum3_;
}

double TimeSample::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

double TimeSample::cv2() const {
  if (sum_ <= 0) return 0;
  const double m = mean();
  const double cv2 = sum2_ / static_cast<double>(count_) / (m * m) - 1;
  return cv2 < 1e-9 ? 0 : cv2;  // Below: what rounding leaves of zero.
}

bool TimeSample::TwoPoints(double& lower, double& upper,
                           double& upper_ratio) const {
  // Two points at distance d1, d2 from the mean with the sample's variance and
  // third central moment: d2 - d1 = third / variance, d1 * d2 = -variance.
  const auto n = static_cast<double>(count_);
  const double m = mean();
  const double variance = sum2_ / n - m * m;
  if (variance <= 1e-6 * m * m) return false;
  const double third = sum3_ / n - 3 * m * sum2_ / n + 2 * m * m * m;
  const double half = third / variance / 2;
  const double root = std::sqrt(half * half + variance);
  lower = m + half - root;
  upper = m + half + root;
  upper_ratio = (m - lower) / (upper - lower);
  return lower >= 1e-6 && upper_ratio > 0 && upper_ratio < 1;
}

double TimeSample::Quantile(double ratio) const {
  const double rank = ratio * static_cast<double>(count_);
  double seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] == 0 || seen + buckets_[i] < rank) {
      seen += buckets_[i];
      continue;
    }
    if (i == 0) return 0;
    const auto middle = static_cast<double>(i) + .5;
    return kLowest * std::exp2(middle / kPerOctave);
  }
  return 0;
}

TimeFit FitTimes(const TimeSample& sample) {
  const double mean = std::max(sample.mean(), kShortest);
  const double cv2 = sample.cv2();
  using enum Span::Distribution;
  // Simplest first.
  std::vector<Span> candidates;
  if (cv2 <= kConstantCv2 || sample.mean() < kShortest) {
    candidates.push_back({.distribution = kConstant, .mean = Rounded(mean)});
  }
  if (std::abs(cv2 - 1) <= Cv2Error(sample)) {
    candidates.push_back({.distribution = kExponential, .mean = Rounded(mean)});
  }
  if (std::abs(cv2 * 3 - 1) <= Cv2Error(sample)) {
    candidates.push_back({.distribution = kUniform, .mean = Rounded(mean)});
  }
  if (cv2 > 0) {
    // The cv2 of a lognormal time is exp(sigma^2) - 1; scenarios have sigma up
    // to 4.
    const double sigma = std::sqrt(std::log1p(cv2));
    candidates.push_back({.distribution = kLognormal,
                          .mean = Rounded(mean),
                          .sigma = std::clamp(sigma, .001, 4.)});
  }
  double lower = 0;
  double upper = 0;
  double upper_ratio = 0;
  if (sample.TwoPoints(lower, upper, upper_ratio)) {
    candidates.push_back({.distribution = kBimodal,
                          .fast = Rounded(lower),
                          .slow = Rounded(upper),
                          .slow_ratio = upper_ratio});
  }
  if (candidates.empty()) {
    candidates.push_back({.distribution = kConstant, .mean = Rounded(mean)});
  }
  TimeFit best;
  for (const Span& span : candidates) {
    const double distance = Distance(sample, span);
    if (&span == candidates.data() ||
        distance < best.distance - SameDistance(sample)) {
      best = {.span = span, .distance = distance, .cv2 = cv2};
    }
  }
  return best;
}

double FitQuantile(const Span& span, double ratio) {
  const double mean = ToSeconds(span.mean);
  switch (span.distribution) {
    case Span::Distribution::kConstant:
      return mean;
    case Span::Distribution::kExponential:
      return -mean * std::log1p(-ratio);
    case Span::Distribution::kLognormal:
      return mean * std::exp(span.sigma * NormalQuantile(ratio) -
                             span.sigma * span.sigma / 2);
    case Span::Distribution::kUniform:
      return 2 * mean * ratio;
    case Span::Distribution::kBimodal:
      return ToSeconds(ratio > 1 - span.slow_ratio ? span.slow : span.fast);
  }
  return mean;
}

double FitZipf(uint64_t clients, double collision) {
  if (clients < 2) return 0;
  const auto collides = [clients](double zipf) {
    const double sum = Harmonic(clients, zipf);
    return Harmonic(clients, 2 * zipf) / (sum * sum);
  };
  double low = 0;
  double high = 3;
  if (collision <= collides(low)) return low;
  if (collision >= collides(high)) return high;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (collides(middle) < collision ? low : high) = middle;
  }
  return (low + high) / 2;
}

double TopShare(uint64_t clients, double zipf) {
  return clients == 0 ? 1 : 1 / Harmonic(clients, zipf);
}

}  // namespace weir::cli
