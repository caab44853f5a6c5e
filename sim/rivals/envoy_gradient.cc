#include "weir/rivals/envoy_gradient.h"

#include <algorithm>
#include <cmath>

#include "weir/rivals/averages.h"

namespace weir::rivals {
namespace {

// Source: [ENVOY-AC], windows in a row at the floor before it measures anew.
constexpr int32_t kWindowsAtFloor = 5;

}  // namespace

EnvoyGradient::EnvoyGradient(const Config& config)
    : config_(config),
      random_(config.seed),
      limit_(config.floor),
      limit_before_(config.floor) {}

int32_t EnvoyGradient::NextLimit(const Config& config, int32_t limit,
                                 Duration least, Duration sample) {
  const double buffered =
      static_cast<double>(least.count()) * (1 + config.buffer);
  const double gradient =
      std::clamp(buffered / static_cast<double>(sample.count()), 0.5, 2.0);
  const double scaled = limit * gradient;
  const auto next = static_cast<int32_t>(scaled + std::sqrt(scaled));
  return std::clamp(next, config.floor, config.ceiling);
}

Duration EnvoyGradient::Jittered(Duration interval, double ratio,
                                 uint64_t draw) {
  using std::chrono::milliseconds;
  const auto ms = std::chrono::duration_cast<milliseconds>(interval).count();
  const auto range = static_cast<uint64_t>(static_cast<double>(ms) * ratio);
  if (range == 0) return interval;
  return interval + milliseconds(draw % range);
}

int32_t EnvoyGradient::Limit(Instant now) {
  CatchUp(now);
  return limit_;
}

void EnvoyGradient::Learn(const Finish& finish) {
  CatchUp(finish.now);
  if (!Teaches(finish.outcome)) return;
  if (finish.now - finish.latency < epoch_) return;
  latencies_.push_back(finish.latency.count());
  if (measuring_ && latencies_.size() >= config_.least_samples) {
    EndMeasurement(finish.now);
  }
}

void EnvoyGradient::CatchUp(Instant now) {
  if (!started_) {
    started_ = true;
    Measure(now);
  }
  if (measuring_) return;
  // Only the first window that ended can hold samples.
  if (now >= window_ends_ && window_ends_ <= measure_at_) {
    EndWindow(window_ends_);
    window_ends_ += ((now - window_ends_) / config_.update_interval + 1) *
                    config_.update_interval;
  }
  if (now >= measure_at_) Measure(measure_at_);
}

void EnvoyGradient::Measure(Instant from) {
  measuring_ = true;
  epoch_ = from;
  limit_before_ = limit_;
  limit_ = config_.floor;
  windows_at_floor_ = 0;
  latencies_.clear();
}

void EnvoyGradient::EndMeasurement(Instant now) {
  least_ = TakeSample();
  measuring_ = false;
  limit_ = limit_before_;
  window_ends_ = now + config_.update_interval;
  measure_at_ =
      now + Jittered(config_.least_interval, config_.jitter, random_.Next());
}

void EnvoyGradient::EndWindow(Instant at) {
  if (latencies_.empty()) return;
  limit_ = NextLimit(config_, limit_, least_, TakeSample());
  windows_at_floor_ = limit_ == config_.floor ? windows_at_floor_ + 1 : 0;
  if (windows_at_floor_ >= kWindowsAtFloor) measure_at_ = at;
}

Duration EnvoyGradient::TakeSample() {
  const Duration sample(NearestRank(latencies_, config_.quantile));
  latencies_.clear();
  return std::max(sample, Duration(1));
}

}  // namespace weir::rivals
