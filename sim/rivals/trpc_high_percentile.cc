#include "weir/rivals/trpc_high_percentile.h"

#include <algorithm>
#include <cmath>

#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

using std::chrono::milliseconds;

// Source of all: [TRPC-CPP] overload_control, the defaults of its
// documentation.
constexpr int32_t kMaximumOf = 30;
constexpr double kMeasuredFactor = 0.1;
constexpr double kLightQuotient = 0.5;
constexpr double kHeavyQuotient = 0.9;
constexpr Duration kLeastWindow = milliseconds(1);
constexpr Duration kMostWindow = milliseconds(100);
constexpr double kUpperStep = 0.01;
constexpr double kLowerStep = 0.02;
constexpr double kFuzzyRatio = 0.1;
constexpr double kGrantedOfMay = 0.5;
constexpr Duration kCutWindow = milliseconds(100);
constexpr int32_t kCutWindowSize = 512;
// Chosen: the original doubles without end, which overflows on an idle service.
constexpr Duration kMostCutWindow = std::chrono::minutes(1);
constexpr int32_t kSamplesPerPriority = 3;

// Chosen: the middle of each quarter of [0, 255].
constexpr std::array<int32_t, kCriticalities> kPriorityOf = {224, 160, 96, 32};

double Averaged(double value, double sample, double up, double down) {
  const double factor = sample >= value ? up : down;
  return sample * factor + value * (1 - factor);
}

}  // namespace

HighAverage::HighAverage() {
  for (size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].samples = static_cast<int32_t>(i) * kMaximumOf / 3;
  }
}

void HighAverage::Add(double sample) {
  for (Group& group : groups_) {
    group.largest = std::max(group.largest, sample);
    if (++group.samples < kMaximumOf) continue;
    sum_of_largest_ += group.largest;
    ++largest_count_;
    group = Group{};
  }
}

double HighAverage::Advance() {
  if (largest_count_ > 0) {
    value_ = value_ * (1 - kMeasuredFactor) +
             sum_of_largest_ / largest_count_ * kMeasuredFactor;
    sum_of_largest_ = 0;
    largest_count_ = 0;
  }
  return value_;
}

PriorityCut::PriorityCut()
    : window_length_(kCutWindow), window_size_(kCutWindowSize) {
  for (Histogram& histogram : histograms_) Clear(histogram);
}

// One of each to begin with keeps the walk along them smooth.
void PriorityCut::Clear(Histogram& histogram) {
  histogram.counts.fill(1);
  histogram.total = kPriorities;
}

PriorityCut::Band PriorityCut::Classify(int32_t priority, double fuzz) const {
  const double fuzzy = priority + fuzz;
  if (fuzzy < lower_) return Band::kRefuse;
  return fuzzy > upper_ ? Band::kMust : Band::kMay;
}

void PriorityCut::Count(int32_t priority, Band band, bool granted) {
  for (Histogram& histogram : histograms_) {
    ++histogram.counts[static_cast<size_t>(priority)];
    ++histogram.total;
  }
  if (band == Band::kMust) must_ += granted ? 1 : 2;  // A penalty when not.
  if (band == Band::kMay) ++may_;
  if (band == Band::kMay && granted) ++granted_;
}

void PriorityCut::Tick(Instant now) {
  ++ticks_;
  if (now >= window_ends_ || ticks_ >= window_size_) EndWindow(now);
}

void PriorityCut::EndWindow(Instant now) {
  ticks_ = 0;
  Histogram& histogram = histograms_[oldest_];
  if (histogram.total < (kPriorities - 1) * kSamplesPerPriority) {
    window_length_ = std::min(2 * window_length_, kMostCutWindow);
    window_size_ = 2 * kCutWindowSize;
    window_ends_ = now + window_length_;
    return;
  }
  const auto granted = static_cast<double>(granted_);
  const bool raise_upper =
      must_ > 0 && granted <= kFuzzyRatio * static_cast<double>(must_);
  const bool raise_lower =
      may_ > 0 && granted <= kGrantedOfMay * static_cast<double>(may_);
  upper_ = Shifted(histogram, upper_, raise_upper ? kUpperStep : -kUpperStep);
  lower_ = Shifted(histogram, lower_, raise_lower ? kLowerStep : -kLowerStep);
  lower_ = std::min(lower_, upper_);

  must_ = may_ = granted_ = 0;
  Clear(histogram);
  oldest_ = (oldest_ + 1) % kHistograms;
  window_length_ = kCutWindow;
  window_size_ = kCutWindowSize;
  window_ends_ = now + window_length_;
}

// The point that has `share` of all samples more below it than `at` has.
double PriorityCut::Shifted(const Histogram& histogram, double at,
                            double share) {
  const double floor = std::floor(at);
  double target = histogram.total * share;
  for (int32_t i = 0; i < kPriorities && i < floor; ++i) {
    target += histogram.counts[static_cast<size_t>(i)];
  }
  if (floor < kPriorities) {
    target += (at - floor) * histogram.counts[static_cast<size_t>(floor)];
  }
  if (target <= 0) return 0;
  for (int32_t i = 0; i < kPriorities; ++i) {
    const double count = histogram.counts[static_cast<size_t>(i)];
    if (target <= count) return i + target / count;
    target -= count;
  }
  return kPriorities;
}

bool TrpcHighPercentile::Admit(const Arrival& arrival) {
  const int32_t priority = kPriorityOf[Index(arrival.criticality)];
  const PriorityCut::Band band = cut_.Classify(priority, ToUnit(arrival.draw));
  bool granted = band != PriorityCut::Band::kRefuse;
  if (granted && in_effect_) {
    const int32_t most = band == PriorityCut::Band::kMust ? 2 * most_ : most_;
    granted = arrival.inflight + arrival.queued <= most;
  }
  cut_.Count(priority, band, granted);
  if (!granted) cut_.Tick(arrival.now);
  return granted;
}

void TrpcHighPercentile::Learn(const Finish& finish) {
  if (finish.outcome != Outcome::kOk) return;
  delay_.Add(static_cast<double>(finish.queue_delay / milliseconds(1)));
  ++succeeded_;
  cost_ms_ += SinceAdmitted(finish) / milliseconds(1);
  ++touches_;
  if (finish.now - window_start_ >= window_length_ ||
      touches_ >= window_size_) {
    EndWindow(finish.now);
  }
  cut_.Tick(finish.now);
}

void TrpcHighPercentile::EndWindow(Instant now) {
  const Duration elapsed = now - window_start_;
  if (succeeded_ < config_.least_window || elapsed <= Duration::zero()) {
    window_length_ = std::min(2 * window_length_, kMostWindow);
    window_size_ = config_.least_window;
  } else {
    const auto succeeded = static_cast<double>(succeeded_);
    const double cost_ms = static_cast<double>(cost_ms_) / succeeded;
    const double qps = succeeded / ToSeconds(elapsed);
    least_cost_ms_ = Averaged(least_cost_ms_, cost_ms, 0.01, 0.1);
    best_qps_ = Averaged(best_qps_, qps, 0.1, 0.01);

    const double quotient =
        delay_.Advance() /
        static_cast<double>(config_.expected_delay / milliseconds(1));
    if (quotient <= kLightQuotient) {
      in_effect_ = false;
    } else if (quotient > kHeavyQuotient) {
      in_effect_ = true;
    }
    const double divisor = quotient <= 1 ? std::max(quotient, kLightQuotient)
                                         : 1 + (quotient - 1) / 2;
    most_ = std::max(
        static_cast<int32_t>(least_cost_ms_ / divisor / 1000 * best_qps_),
        config_.floor);
    const Duration twice =
        2 * milliseconds(static_cast<int64_t>(least_cost_ms_));
    window_length_ = std::clamp(twice, kLeastWindow, kMostWindow);
    window_size_ = std::max(static_cast<int32_t>(cost_ms / 1000 * qps),
                            config_.least_window);
  }
  window_start_ = now;
  touches_ = 0;
  succeeded_ = 0;
  cost_ms_ = 0;
}

}  // namespace weir::rivals
