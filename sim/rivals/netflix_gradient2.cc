#include "weir/rivals/netflix_gradient2.h"

#include <algorithm>

namespace weir::rivals {
namespace {

// Source: [NETFLIX-CL] Gradient2Limit, the warm-up of its long average.
constexpr int32_t kWarmUp = 10;

}  // namespace

NetflixGradient2::NetflixGradient2(const Config& config)
    : config_(config),
      limit_(config.initial),
      long_latency_(config.long_window, kWarmUp) {}

void NetflixGradient2::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome)) return;
  const auto latency = static_cast<double>(finish.latency.count());
  const double long_latency = long_latency_.Add(latency);
  if (long_latency > 2 * latency) long_latency_.Scale(config_.long_decay);
  if (finish.inflight_at_start < limit_ / 2) return;

  // At latency 0 the ratio is infinite or undefined; both mean "no queue".
  const double ratio =
      latency > 0 ? config_.tolerance * long_latency / latency : 1.0;
  const double next = limit_ * std::clamp(ratio, 0.5, 1.0) + config_.queue;
  limit_ = std::clamp(
      limit_ * (1 - config_.smoothing) + next * config_.smoothing,
      static_cast<double>(config_.floor), static_cast<double>(config_.ceiling));
}

}  // namespace weir::rivals
