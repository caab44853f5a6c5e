#include "weir/rivals/sentinel_system.h"

#include <algorithm>

namespace weir::rivals {
namespace {

// Source of all: [SENTINEL] at d75a668: SAMPLE_COUNT, INTERVAL and
// csp.sentinel.statistic.max.rt.
constexpr int32_t kBuckets = 2;
constexpr Duration kBucket = std::chrono::milliseconds(500);
constexpr int64_t kMostLatencyMs = 5000;

int64_t WholeMs(Instant at) {
  return at.time_since_epoch() / std::chrono::milliseconds(1);
}

}  // namespace

SentinelSystem::SentinelSystem(const Config& config)
    : config_(config),
      passed_(kBucket, kBuckets),
      completed_(kBucket, kBuckets) {}

bool SentinelSystem::Admit(const Arrival& arrival) {
  if (!Passes(arrival)) return false;
  passed_.Add(arrival.now, {.count = 1});
  return true;
}

bool SentinelSystem::Passes(const Arrival& arrival) {
  const Instant now = arrival.now;
  const double inflight = arrival.inflight + arrival.queued;
  if (static_cast<double>(passed_.Total(now).count) + 1 > config_.qps) {
    return false;
  }
  if (inflight > config_.threads) return false;
  if (MeanLatencyMs(now) > config_.mean_latency_ms) return false;
  if (load1_ > config_.load1 && inflight > 1 &&
      inflight >
          BestQps(now) * static_cast<double>(LeastLatencyMs(now)) / 1000) {
    return false;
  }
  return cpu_ratio_ <= config_.cpu_ratio;
}

double SentinelSystem::BestQps(Instant now) {
  int64_t best = 1;
  completed_.ForEach(now, true, [&best](const Tally& slice) {
    best = std::max(best, slice.count);
  });
  return static_cast<double>(best) * kBuckets / ToSeconds(kBucket * kBuckets);
}

int64_t SentinelSystem::LeastLatencyMs(Instant now) {
  int64_t least = kMostLatencyMs;
  completed_.ForEach(now, true, [&least](const Tally& slice) {
    least = std::min(least, slice.least);
  });
  return std::max<int64_t>(least, 1);
}

double SentinelSystem::MeanLatencyMs(Instant now) {
  const Tally& total = completed_.Total(now);
  if (total.count == 0) return 0;
  return static_cast<double>(total.sum) / static_cast<double>(total.count);
}

void SentinelSystem::Learn(const Finish& finish) {
  const int64_t ms =
      WholeMs(finish.now) - WholeMs(finish.now - SinceAdmitted(finish));
  completed_.Add(finish.now, {.count = 1, .sum = ms, .least = ms});
}

void SentinelSystem::Watch(const Signals& signals) {
  load1_ = signals.load1;
  cpu_ratio_ = signals.cpu_ratio;
}

}  // namespace weir::rivals
