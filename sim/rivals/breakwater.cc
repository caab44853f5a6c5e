#include "weir/rivals/breakwater.h"

#include <algorithm>

namespace weir::rivals {
namespace {

// Source of both: [BREAKWATER-CODE].
constexpr double kMostCut = 0.5;
constexpr int32_t kDropAtTargets = 2;

}  // namespace

bool Breakwater::Admit(const Arrival& arrival) {
  See(arrival.now, arrival.queue_delay);
  return arrival.inflight + arrival.queued < static_cast<int64_t>(credits_);
}

bool Breakwater::Take(const Start& start) {
  See(start.now, start.queue_delay);
  return start.queue_delay < kDropAtTargets * config_.target;
}

void Breakwater::See(Instant now, Duration delay) {
  worst_delay_ = std::max(worst_delay_, delay);
  if (!update_at_) update_at_ = now + config_.round_trip;
  if (now < *update_at_) return;
  const int64_t rounds = (now - *update_at_) / config_.round_trip + 1;
  *update_at_ += rounds * config_.round_trip;
  if (worst_delay_ < config_.target) {
    credits_ +=
        static_cast<double>(rounds) * config_.clients * config_.additive;
  } else {
    const double excess =
        ToSeconds(worst_delay_ - config_.target) / ToSeconds(config_.target);
    credits_ *= std::max(1 - config_.multiplicative * excess, kMostCut);
  }
  credits_ = std::clamp(
      credits_, static_cast<double>(config_.cores),
      static_cast<double>(config_.most_per_client) * config_.clients);
  worst_delay_ = Duration::zero();
}

}  // namespace weir::rivals
