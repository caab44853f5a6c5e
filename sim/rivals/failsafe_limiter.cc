#include "weir/rivals/failsafe_limiter.h"

#include <algorithm>
#include <cmath>

namespace weir::rivals {
namespace {

// Source of all: [FAILSAFE-GO] adaptivelimiter.go.
constexpr int32_t kWarmUp = 10;
constexpr int32_t kSmoothed = 5;
constexpr double kWeakCorrelation = 0.3;
constexpr double kStrongCorrelation = 0.5;
constexpr double kEvenThroughput = 0.2;

}  // namespace

FailsafeLimiter::FailsafeLimiter(const Config& config)
    : config_(config),
      limit_(config.initial),
      median_(kSmoothed),
      recent_(kSmoothed, kWarmUp),
      baseline_(config.baseline_age, kWarmUp),
      throughput_(config.correlation_window, kWarmUp),
      latency_(config.correlation_window, kWarmUp) {}

void FailsafeLimiter::WarmBaseline(Duration latency, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    baseline_.Add(static_cast<double>(latency.count()));
  }
}

void FailsafeLimiter::Learn(const Finish& finish) {
  if (!ends_at_) ends_at_ = finish.now - finish.latency;
  if (Teaches(finish.outcome)) {
    latencies_.push_back(finish.latency.count());
    largest_inflight_ = std::max(largest_inflight_, finish.inflight_at_start);
  }
  if (latencies_.empty() || finish.now <= *ends_at_ ||
      latencies_.size() < config_.least_samples) {
    return;
  }
  EndWindow(finish.now, finish.inflight >= Limit(finish.now));
}

void FailsafeLimiter::EndWindow(Instant now, bool full) {
  const Duration least(*std::min_element(latencies_.begin(), latencies_.end()));
  const int64_t quantile = NearestRank(latencies_, config_.quantile);
  const double recent = recent_.Add(median_.Add(static_cast<double>(quantile)));
  const int32_t stable = LargestLately(now, largest_inflight_);
  Move(std::max(recent, 1.0), largest_inflight_, stable, full);
  latencies_.clear();
  largest_inflight_ = 0;
  ends_at_ = now + std::min(std::max(2 * least, config_.window_floor),
                            config_.window_ceiling);
}

void FailsafeLimiter::Move(double recent, int32_t inflight, int32_t stable,
                           bool full) {
  const int32_t step = Log10AtLeastOne(static_cast<int32_t>(limit_));
  const double baseline = baseline_.Add(recent);
  double next = limit_;
  switch (Decide(recent, baseline, inflight, full)) {
    case Change::kIncrease:
      next += step;
      break;
    case Change::kDecrease:
      next -= step;
      break;
    case Change::kHold:
      break;
  }
  if (next > MostLimit(config_, stable)) next = limit_ - step;
  limit_ = std::clamp(next, static_cast<double>(config_.floor),
                      static_cast<double>(config_.ceiling));
}

FailsafeLimiter::Change FailsafeLimiter::Decide(double recent, double baseline,
                                                int32_t inflight, bool full) {
  const int32_t step = Log10AtLeastOne(static_cast<int32_t>(limit_));
  const double queue = std::ceil(limit_ * (1 - baseline / recent));
  const double per_second = inflight / (recent * 1e-9);
  const CorrelationWindow::State throughput =
      throughput_.Add(inflight, per_second);
  const double latency = latency_.Add(inflight, recent).correlation;

  if (queue > 6 * step) return Change::kDecrease;
  if (full && throughput.correlation < 0) return Change::kDecrease;
  if (full && latency > kStrongCorrelation &&
      (throughput.correlation < kWeakCorrelation ||
       throughput.y_cv < kEvenThroughput)) {
    return Change::kDecrease;
  }
  return queue < 3 * step ? Change::kIncrease : Change::kHold;
}

int32_t FailsafeLimiter::LargestLately(Instant now, int32_t inflight) {
  if (config_.stabilization == Duration::zero()) return inflight;
  while (!peaks_.empty() && peaks_.back().inflight <= inflight) {
    peaks_.pop_back();
  }
  peaks_.push_back({now, inflight});
  while (now - peaks_.front().at >= config_.stabilization &&
         peaks_.size() > 1) {
    peaks_.pop_front();
  }
  return peaks_.front().inflight;
}

double FailsafeLimiter::MostLimit(const Config& config, int32_t inflight) {
  double factor = config.ceiling_factor;
  if (config.factor_decay > 0) {
    factor -= config.factor_decay * std::log10(std::max(inflight, 1));
    factor = std::max(factor, config.factor_floor);
  }
  return inflight * factor;
}

}  // namespace weir::rivals
