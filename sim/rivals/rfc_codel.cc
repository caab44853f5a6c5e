#include "weir/rivals/rfc_codel.h"

#include <cmath>

namespace weir::rivals {
namespace {

// Source: [RFC8289] section 5.5, how long the former rate is remembered.
constexpr int32_t kMemoryIntervals = 16;

}  // namespace

bool RfcCodel::Take(const Start& start) {
  const bool may_drop = MayDrop(start);
  if (dropping_) {
    if (!may_drop) {
      dropping_ = false;
      return true;
    }
    if (start.now < drop_at_) return true;
    ++count_;
    drop_at_ = NextDrop(drop_at_);
    return false;
  }
  if (!may_drop) return true;

  dropping_ = true;
  const int64_t delta = count_ - last_count_;
  const bool recent =
      start.now - drop_at_ < kMemoryIntervals * config_.interval;
  count_ = delta > 1 && recent ? delta : 1;
  drop_at_ = NextDrop(start.now);
  last_count_ = count_;
  return false;
}

bool RfcCodel::MayDrop(const Start& start) {
  if (start.queue_delay < config_.target || start.queued == 0) {
    above_until_.reset();
    return false;
  }
  if (!above_until_) {
    above_until_ = start.now + config_.interval;
    return false;
  }
  return start.now >= *above_until_;
}

Instant RfcCodel::NextDrop(Instant from) const {
  return from + FromSeconds(ToSeconds(config_.interval) /
                            std::sqrt(static_cast<double>(count_)));
}

}  // namespace weir::rivals
