#include "weir/rivals/pie.h"

#include <algorithm>

#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

// Source of all: [RFC8033] section 4.2 and 4.3.
struct Scale {
  double below;  // For p below this,
  double ratio;  // the change is multiplied by this.
};
constexpr Scale kScales[] = {
    {0.000001, 1.0 / 2048}, {0.00001, 1.0 / 512}, {0.0001, 1.0 / 128},
    {0.001, 1.0 / 32},      {0.01, 1.0 / 8},      {0.1, 1.0 / 2},
};
constexpr double kLargeDropRatio = 0.1;
constexpr double kLargestStep = 0.02;
constexpr double kIdleDecay = 0.98;
constexpr double kSafeDropRatio = 0.2;
constexpr int32_t kSafeQueue = 2;

// Idle updates that leave nothing of any p.
constexpr int64_t kMostMissedUpdates = 2000;

}  // namespace

bool Pie::Admit(const Arrival& arrival) {
  if (!update_at_) update_at_ = arrival.now + config_.update_interval;
  if (arrival.now >= *update_at_) {
    const int64_t missed =
        (arrival.now - *update_at_) / config_.update_interval;
    for (int64_t i = 0; i <= std::min(missed, kMostMissedUpdates); ++i) {
      Update(arrival.queue_delay);
    }
    *update_at_ += (missed + 1) * config_.update_interval;
  }
  if (burst_left_ > Duration::zero()) return true;
  if (delay_before_ < config_.target / 2 && drop_ratio_ < kSafeDropRatio) {
    return true;
  }
  if (arrival.queued <= kSafeQueue) return true;
  return ToUnit(arrival.draw) >= drop_ratio_;
}

void Pie::Update(Duration delay) {
  double change = config_.alpha * ToSeconds(delay - config_.target) +
                  config_.beta * ToSeconds(delay - delay_before_);
  for (const Scale& scale : kScales) {
    if (drop_ratio_ < scale.below) {
      change *= scale.ratio;
      break;
    }
  }
  if (drop_ratio_ >= kLargeDropRatio) change = std::min(change, kLargestStep);
  drop_ratio_ += change;
  if (delay == Duration::zero() && delay_before_ == Duration::zero()) {
    drop_ratio_ *= kIdleDecay;
  }
  drop_ratio_ = std::clamp(drop_ratio_, 0.0, 1.0);

  burst_left_ =
      std::max(burst_left_ - config_.update_interval, Duration::zero());
  if (drop_ratio_ == 0 && delay < config_.target / 2 &&
      delay_before_ < config_.target / 2) {
    burst_left_ = config_.burst;
  }
  delay_before_ = delay;
}

}  // namespace weir::rivals
