#include "weir/rivals/folly_codel.h"

#include <algorithm>

namespace weir::rivals {

bool FollyCodel::Take(const Start& start) {
  if (start.now > interval_ends_) {
    interval_ends_ = start.now + config_.interval;
    overloaded_ = least_delay_ > config_.target;
    least_delay_ = start.queue_delay;
    return true;
  }
  least_delay_ = std::min(least_delay_, start.queue_delay);
  return !overloaded_ || start.queue_delay <= 2 * config_.target;
}

}  // namespace weir::rivals
