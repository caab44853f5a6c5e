#include "weir/rivals/netflix_aimd.h"

#include <algorithm>

namespace weir::rivals {

NetflixAimd::NetflixAimd(const Config& config)
    : config_(config), limit_(config.initial) {}

void NetflixAimd::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome)) return;
  if (Dropped(finish.outcome) || finish.latency > config_.timeout) {
    limit_ = static_cast<int32_t>(limit_ * config_.backoff);
  } else if (2 * finish.inflight_at_start >= limit_) {
    ++limit_;
  }
  limit_ = std::clamp(limit_, config_.floor, config_.ceiling);
}

}  // namespace weir::rivals
