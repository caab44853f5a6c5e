#include "weir/rivals/brpc_timeout.h"

#include <algorithm>
#include <optional>

namespace weir::rivals {
namespace {

// Doubling stops here, far above every timeout, so that it cannot overflow.
constexpr Duration kWorstAverage = std::chrono::hours(1);

}  // namespace

BrpcTimeout::BrpcTimeout(const Config& config)
    : config_(config),
      window_(config.window),
      average_(config.initial_average) {}

bool BrpcTimeout::Admit(const Arrival& arrival) {
  const int32_t inflight = arrival.inflight + arrival.queued + 1;
  if (inflight == 1) return true;
  return inflight <= config_.ceiling && average_ < config_.timeout;
}

void BrpcTimeout::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome) || !window_.Sampled(finish)) return;
  Finish sample = finish;
  sample.latency = SinceAdmitted(finish);
  const std::optional<BrpcWindow::Summary> window = window_.Add(sample);
  if (!window) return;
  if (window->succeeded == 0) {
    average_ = std::min(2 * average_, kWorstAverage);
  } else {
    average_ = std::chrono::microseconds(window->average_us);
  }
}

}  // namespace weir::rivals
