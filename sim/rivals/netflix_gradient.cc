#include "weir/rivals/netflix_gradient.h"

#include <algorithm>
#include <cmath>

namespace weir::rivals {

int32_t SquareRootAtLeast(int32_t n, int32_t baseline) {
  return std::max(baseline, static_cast<int32_t>(std::sqrt(n)));
}

NetflixGradient::NetflixGradient(const Config& config)
    : config_(config),
      random_(config.seed),
      limit_(config.initial),
      countdown_(NextCountdown()) {}

int32_t NetflixGradient::NextCountdown() {
  if (config_.probe_interval == 0) return 0;
  const auto interval = static_cast<uint64_t>(config_.probe_interval);
  return config_.probe_interval +
         static_cast<int32_t>(random_.Next() % interval);
}

void NetflixGradient::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome) || finish.latency <= Duration::zero()) return;

  const double queue =
      SquareRootAtLeast(static_cast<int32_t>(limit_), config_.queue_baseline);
  if (config_.probe_interval != 0 && countdown_-- <= 0) {
    countdown_ = NextCountdown();
    limit_ = std::max(static_cast<double>(config_.floor), queue);
    base_ = Duration::zero();
    return;
  }
  if (base_ == Duration::zero() || finish.latency < base_) {
    base_ = finish.latency;
  }

  double next = 0;
  if (Dropped(finish.outcome)) {
    next = limit_ * config_.backoff;
  } else if (finish.inflight_at_start < limit_ / 2) {
    return;
  } else {
    const double ratio = config_.tolerance *
                         static_cast<double>(base_.count()) /
                         static_cast<double>(finish.latency.count());
    next = limit_ * std::clamp(ratio, 0.5, 1.0) + queue;
  }
  if (next < limit_) {
    next =
        std::max(static_cast<double>(config_.floor),
                 limit_ * (1 - config_.smoothing) + config_.smoothing * next);
  }
  limit_ =
      std::max(queue, std::min(static_cast<double>(config_.ceiling), next));
}

}  // namespace weir::rivals
