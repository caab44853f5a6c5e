#include "weir/rivals/netflix_vegas.h"

#include <algorithm>
#include <cmath>

#include "weir/rivals/averages.h"

namespace weir::rivals {
namespace {

double ProbeJitter(SplitMix64& random) { return 0.5 + random.NextUnit() / 2; }

}  // namespace

NetflixVegas::NetflixVegas(const Config& config)
    : config_(config),
      random_(config.seed),
      limit_(config.initial),
      probe_jitter_(ProbeJitter(random_)) {}

void NetflixVegas::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome) || finish.latency <= Duration::zero()) return;

  ++samples_since_probe_;
  const double due = probe_jitter_ * config_.probe_multiplier * limit_;
  if (due <= static_cast<double>(samples_since_probe_)) {
    probe_jitter_ = ProbeJitter(random_);
    samples_since_probe_ = 0;
    base_ = finish.latency;
    return;
  }
  if (base_ == Duration::zero() || finish.latency < base_) {
    base_ = finish.latency;
    return;
  }
  if (const std::optional<double> next = Next(finish)) {
    const double clamped =
        std::clamp(*next, 1.0, static_cast<double>(config_.ceiling));
    limit_ = (1 - config_.smoothing) * limit_ + config_.smoothing * clamped;
  }
}

std::optional<double> NetflixVegas::Next(const Finish& finish) const {
  if (Dropped(finish.outcome)) return Decreased();
  if (2 * finish.inflight_at_start < limit_) return std::nullopt;

  const double ratio = static_cast<double>(base_.count()) /
                       static_cast<double>(finish.latency.count());
  const auto queue = static_cast<int32_t>(std::ceil(limit_ * (1 - ratio)));
  const int32_t step = Log10AtLeastOne(static_cast<int32_t>(limit_));
  if (queue <= step) return limit_ + 6 * step;
  if (queue < 3 * step) return limit_ + step;
  if (queue > 6 * step) return Decreased();
  return std::nullopt;
}

double NetflixVegas::Decreased() const {
  if (config_.decrease_ratio) return limit_ * *config_.decrease_ratio;
  return limit_ - Log10AtLeastOne(static_cast<int32_t>(limit_));
}

}  // namespace weir::rivals
