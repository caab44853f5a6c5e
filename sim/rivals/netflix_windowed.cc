#include "weir/rivals/netflix_windowed.h"

#include <algorithm>

namespace weir::rivals {

void AverageSampleWindow::Add(Duration latency, int32_t inflight,
                              bool dropped) {
  sum_ += latency;
  least_ = std::min(least_, latency);
  largest_inflight_ = std::max(largest_inflight_, inflight);
  ++count_;
  dropped_ = dropped_ || dropped;
}

void NetflixWindowed::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome) || finish.latency < config_.least_latency) {
    return;
  }
  window_.Add(finish.latency, finish.inflight_at_start,
              Dropped(finish.outcome));
  if (finish.now <= ends_at_) return;

  const AverageSampleWindow window = std::exchange(window_, {});
  // Halved before it is compared, so that no latency overflows.
  const Duration half = std::clamp(window.least(), config_.window_floor / 2,
                                   config_.window_ceiling / 2);
  ends_at_ = finish.now + 2 * half;
  if (window.count() < config_.least_samples) return;

  Finish sample = finish;
  sample.latency = window.mean();
  sample.inflight_at_start = window.largest_inflight();
  sample.outcome = window.dropped() ? Outcome::kTimedOut : Outcome::kOk;
  inner_.Learn(sample);
}

}  // namespace weir::rivals
