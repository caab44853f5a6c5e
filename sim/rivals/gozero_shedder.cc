#include "weir/rivals/gozero_shedder.h"

#include <algorithm>
#include <cmath>

namespace weir::rivals {
namespace {

// Source of all: [GO-ZERO] core/load/adaptiveshedder.go, core/stat.
constexpr Duration kCoolOff = std::chrono::seconds(1);
constexpr double kInflightBeta = 0.9;
constexpr double kCpuBeta = 0.95;
constexpr double kNoLatencyMs = 1000;
constexpr double kLeastFactor = 0.1;

}  // namespace

GozeroShedder::GozeroShedder(const Config& config)
    : config_(config),
      bucket_(config.window / config.buckets),
      window_(bucket_, config.buckets) {}

int64_t GozeroShedder::BestPasses(Instant now) {
  int64_t best = 1;
  window_.ForEach(now, false, [&best](const Tally& slice) {
    best = std::max(best, slice.count);
  });
  return best;
}

double GozeroShedder::LeastLatencyMs(Instant now) {
  double least = kNoLatencyMs;
  window_.ForEach(now, false, [&least](const Tally& slice) {
    if (slice.count == 0) return;
    const double mean =
        static_cast<double>(slice.sum) / static_cast<double>(slice.count);
    least = std::min(least, std::round(mean));
  });
  return least;
}

double GozeroShedder::MostInflight(Instant now) {
  const double scale = 1 / ToSeconds(bucket_) / 1000;
  return std::max(
      1.0, static_cast<double>(BestPasses(now)) * LeastLatencyMs(now) * scale);
}

bool GozeroShedder::Admit(const Arrival& arrival) {
  if (!Hot(arrival.now)) return true;
  const double most = MostInflight(arrival.now) * OverloadFactor();
  const double inflight = arrival.inflight + arrival.queued;
  if (average_inflight_ <= most || inflight <= most) return true;
  refused_lately_ = true;
  return false;
}

bool GozeroShedder::Hot(Instant now) {
  if (cpu_permille_ >= config_.cpu_threshold_permille) {
    overloaded_at_ = now;
    return true;
  }
  if (!refused_lately_ || !overloaded_at_) return false;
  if (now - *overloaded_at_ < kCoolOff) return true;
  refused_lately_ = false;
  return false;
}

double GozeroShedder::OverloadFactor() const {
  const double span = 1000.0 - config_.cpu_threshold_permille;
  return std::clamp((1000.0 - static_cast<double>(cpu_permille_)) / span,
                    kLeastFactor, 1.0);
}

void GozeroShedder::Learn(const Finish& finish) {
  const double left = finish.inflight + finish.queued - 1;
  average_inflight_ =
      average_inflight_ * kInflightBeta + left * (1 - kInflightBeta);
  if (finish.outcome != Outcome::kOk) return;
  constexpr Duration kMillisecond = std::chrono::milliseconds(1);
  const int64_t ms =
      (SinceAdmitted(finish) + kMillisecond - Duration(1)) / kMillisecond;
  window_.Add(finish.now, {.count = 1, .sum = ms});
}

void GozeroShedder::Watch(const Signals& signals) {
  cpu_permille_ =
      static_cast<int64_t>(static_cast<double>(cpu_permille_) * kCpuBeta +
                           signals.cpu_ratio * 1000 * (1 - kCpuBeta));
}

}  // namespace weir::rivals
