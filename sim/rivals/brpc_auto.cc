#include "weir/rivals/brpc_auto.h"

#include <algorithm>
#include <cmath>

namespace weir::rivals {
namespace {

// Source of all: [BRPC] auto_concurrency_limiter.cpp, the defaults of
// auto_cl_max_explore_ratio and its neighbours.
constexpr double kMostExplore = 0.3;
constexpr double kLeastExplore = 0.06;
constexpr double kExploreStep = 0.02;
constexpr double kCut = 0.9;
constexpr double kLatencyFactor = 0.1;
constexpr double kQpsFactor = kLatencyFactor / 10;

}  // namespace

BrpcAuto::BrpcAuto(const Config& config)
    : config_(config),
      random_(config.seed),
      window_(config.window),
      limit_(config.initial),
      explore_(kMostExplore) {}

void BrpcAuto::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome)) return;
  if (!remeasure_at_) remeasure_at_ = NextRemeasuring(finish.now);
  if (!window_.Sampled(finish)) return;

  if (ignore_until_) {
    if (finish.now < *ignore_until_) return;
    ignore_until_.reset();
    least_us_ = -1;
    remeasure_at_ = NextRemeasuring(finish.now);
    window_.Reset(finish.now);
  }
  const std::optional<BrpcWindow::Summary> window = window_.Add(finish);
  if (!window) return;
  if (window->succeeded == 0) {
    SetLimit(limit_ / 2);
  } else {
    Update(*window, finish.now);
  }
}

void BrpcAuto::Update(const BrpcWindow::Summary& window, Instant now) {
  const auto average = static_cast<double>(window.average_us);
  if (least_us_ <= 0) {
    least_us_ = window.average_us;
  } else if (window.average_us < least_us_) {
    least_us_ = static_cast<int64_t>(average * kLatencyFactor +
                                     static_cast<double>(least_us_) *
                                         (1 - kLatencyFactor));
  }
  best_qps_ = window.qps >= best_qps_
                  ? window.qps
                  : window.qps * kQpsFactor + best_qps_ * (1 - kQpsFactor);

  const auto least = static_cast<double>(least_us_);
  if (*remeasure_at_ <= now) {
    ignore_until_ = now + std::chrono::microseconds(2 * window.average_us);
    SetLimit(static_cast<int32_t>(std::ceil(best_qps_ * least / 1e6 * kCut)));
    return;
  }
  if (average <= least * (1 + kLeastExplore) ||
      window.qps <= best_qps_ / (1 + kLeastExplore)) {
    explore_ = std::min(kMostExplore, explore_ + kExploreStep);
  } else {
    explore_ = std::max(kLeastExplore, explore_ - kExploreStep);
  }
  SetLimit(static_cast<int32_t>(least * best_qps_ / 1e6 * (1 + explore_)));
}

void BrpcAuto::SetLimit(int32_t limit) {
  limit_ = std::max(limit, config_.workers);
}

Instant BrpcAuto::NextRemeasuring(Instant now) {
  const Duration half = config_.remeasure_interval / 2;
  return now + half +
         Duration(random_.Next() % static_cast<uint64_t>(half.count()));
}

}  // namespace weir::rivals
