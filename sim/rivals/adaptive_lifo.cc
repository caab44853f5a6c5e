#include "weir/rivals/adaptive_lifo.h"

namespace weir::rivals {

bool AdaptiveLifo::Admit(const Arrival& arrival) {
  if (arrival.queued == 0) last_empty_ = arrival.now;
  return true;
}

bool AdaptiveLifo::Take(const Start& start) {
  const bool standing = start.now - last_empty_ > config_.patience;
  if (start.queued == 0) last_empty_ = start.now;
  return start.queue_delay <= (standing ? config_.target : config_.patience);
}

Order AdaptiveLifo::QueueOrder(Instant now) {
  return now - last_empty_ > config_.target ? Order::kNewestFirst
                                            : Order::kOldestFirst;
}

}  // namespace weir::rivals
