#include "weir/rivals/failsafe_priority.h"

#include <algorithm>

namespace weir::rivals {
namespace {

// Source of both: [FAILSAFE-GO] priority/.
constexpr size_t kLevelsKept = 1000;
constexpr int32_t kLevelsPerClass = 100;

int32_t LevelOf(const Arrival& arrival) {
  const auto importance =
      static_cast<int32_t>(kCriticalities - 1 - Index(arrival.criticality));
  return kLevelsPerClass * importance +
         static_cast<int32_t>(arrival.draw % kLevelsPerClass);
}

}  // namespace

double FailsafePriority::RefusalRatio(int32_t queued, int32_t first,
                                      int32_t full) {
  if (queued < first) return 0;
  if (queued >= full) return 1;
  return static_cast<double>(queued - first) / (full - first);
}

bool FailsafePriority::Admit(const Arrival& arrival) {
  const int32_t level = LevelOf(arrival);
  if (levels_.size() < kLevelsKept) {
    levels_.push_back(level);
  } else {
    levels_[next_level_] = level;
    next_level_ = (next_level_ + 1) % kLevelsKept;
  }
  if (arrival.now >= calibrate_at_) {
    calibrate_at_ = arrival.now + config_.period;
    Calibrate(arrival);
  }
  const bool full = arrival.inflight >= limiter_.Limit(arrival.now);
  return !full || level >= threshold_;
}

void FailsafePriority::Calibrate(const Arrival& arrival) {
  const double limit = limiter_.Limit(arrival.now);
  const double ratio =
      RefusalRatio(arrival.queued,
                   static_cast<int32_t>(limit * config_.first_refusal_factor),
                   static_cast<int32_t>(limit * config_.full_refusal_factor));
  if (ratio == 0) {
    threshold_ = 0;
    return;
  }
  std::vector<int64_t> levels(levels_.begin(), levels_.end());
  threshold_ = static_cast<int32_t>(NearestRank(levels, ratio));
}

}  // namespace weir::rivals
