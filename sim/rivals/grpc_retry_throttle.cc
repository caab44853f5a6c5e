#include "weir/rivals/grpc_retry_throttle.h"

#include <algorithm>

namespace weir::rivals {

bool GrpcRetryThrottle::Admit(const Arrival& arrival) {
  return arrival.attempt == 0 || 2 * tokens_ > config_.max_milli;
}

void GrpcRetryThrottle::Learn(const Finish& finish) {
  tokens_ += finish.outcome == Outcome::kOk ? config_.ratio_milli : -1000;
  tokens_ = std::clamp(tokens_, 0, config_.max_milli);
}

}  // namespace weir::rivals
