#include "weir/rivals/cinnamon.h"

#include <algorithm>

#include "weir/rivals/averages.h"
#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

// Source of both: [CINNAMON2023].
constexpr size_t kPrioritiesKept = 1000;
constexpr int32_t kCohorts = 128;

int32_t PriorityOf(const Arrival& arrival) {
  const auto tier =
      static_cast<int32_t>(kCriticalities - 1 - Index(arrival.criticality));
  return tier * kCohorts +
         static_cast<int32_t>(Mix64(arrival.client) % uint64_t{kCohorts});
}

}  // namespace

bool Cinnamon::Admit(const Arrival& arrival) {
  if (arrival.now >= period_ends_) EndPeriod(arrival);
  const int32_t priority = PriorityOf(arrival);
  if (priorities_.size() < kPrioritiesKept) {
    priorities_.push_back(priority);
  } else {
    priorities_[next_priority_] = priority;
    next_priority_ = (next_priority_ + 1) % kPrioritiesKept;
  }
  if (priority < threshold_) return false;
  ++in_;
  return true;
}

bool Cinnamon::Take(const Start& start) {
  const auto patience = static_cast<double>(start.patience.count());
  if (static_cast<double>(start.queue_delay.count()) >
      patience * config_.patience_share) {
    return false;
  }
  ++out_;
  return true;
}

void Cinnamon::EndPeriod(const Arrival& arrival) {
  const int32_t free =
      std::max(limiter_.Limit(arrival.now) - arrival.inflight, 0);
  const auto out = static_cast<double>(std::max<int64_t>(out_, 1));
  const double error = static_cast<double>(in_ - out_ - free) / out;
  integral_ = std::clamp(
      integral_ + config_.integral * error * ToSeconds(config_.period), 0.0,
      1.0);
  ratio_ = std::clamp(config_.proportional * error + integral_, 0.0, 1.0);
  threshold_ = 0;
  if (ratio_ > 0 && !priorities_.empty()) {
    std::vector<int64_t> sorted(priorities_.begin(), priorities_.end());
    threshold_ = static_cast<int32_t>(NearestRank(sorted, ratio_));
  }
  in_ = 0;
  out_ = 0;
  period_ends_ = arrival.now + config_.period;
}

}  // namespace weir::rivals
