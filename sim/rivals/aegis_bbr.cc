#include "weir/rivals/aegis_bbr.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::rivals {
namespace {

constexpr Duration kCoolOff = std::chrono::seconds(1);
constexpr double kCpuDecay = 0.95;
constexpr int64_t kMostCpu = 1000;

}  // namespace

AegisBbr::AegisBbr(const Config& config)
    : config_(config),
      bucket_(config.window / config.buckets),
      passes_(bucket_, config.buckets),
      latencies_(bucket_, config.buckets) {}

bool AegisBbr::Fresh(const std::optional<Cached>& cached, Instant now) const {
  return cached && now - cached->at < bucket_;
}

int64_t AegisBbr::BestPasses(Instant now) {
  if (!Fresh(best_, now)) {
    int64_t best = 1;
    passes_.ForEach(now, false, [&best](const Tally& slice) {
      best = std::max(best, slice.count);
    });
    best_ = Cached{now, best};
  }
  return best_->value;
}

int64_t AegisBbr::LeastLatencyMs(Instant now) {
  if (!Fresh(least_, now)) {
    double least = std::numeric_limits<double>::infinity();
    latencies_.ForEach(now, false, [&least](const Tally& slice) {
      if (slice.count == 0) return;
      least = std::min(least, static_cast<double>(slice.sum) /
                                  static_cast<double>(slice.count));
    });
    const int64_t ms =
        std::isinf(least) ? 1 : static_cast<int64_t>(std::ceil(least));
    least_ = Cached{now, std::max<int64_t>(ms, 1)};
  }
  return least_->value;
}

int64_t AegisBbr::MostInflight(Instant now) {
  const double per_second = 1 / ToSeconds(bucket_);
  return static_cast<int64_t>(
      std::floor(static_cast<double>(BestPasses(now) * LeastLatencyMs(now)) *
                     per_second / 1000 +
                 0.5));
}

bool AegisBbr::Admit(const Arrival& arrival) { return !Refuses(arrival); }

bool AegisBbr::Refuses(const Arrival& arrival) {
  const int64_t inflight = arrival.inflight + arrival.queued;
  const auto full = [&] {
    return inflight > 1 && inflight > MostInflight(arrival.now);
  };
  if (cpu_permille_ < config_.cpu_threshold_permille) {
    if (!first_refusal_) return false;
    if (arrival.now - *first_refusal_ <= kCoolOff) return full();
    first_refusal_.reset();
    return false;
  }
  const bool refuse = full();
  if (refuse && !first_refusal_) first_refusal_ = arrival.now;
  return refuse;
}

void AegisBbr::Learn(const Finish& finish) {
  const int64_t ms = SinceAdmitted(finish) / std::chrono::milliseconds(1);
  if (ms > 0) latencies_.Add(finish.now, {.count = 1, .sum = ms});
  passes_.Add(finish.now, {.count = 1});
}

void AegisBbr::Watch(const Signals& signals) {
  const double now = std::min(signals.cpu_ratio * 1000, double{kMostCpu});
  cpu_permille_ = std::min(
      kMostCpu,
      static_cast<int64_t>(static_cast<double>(cpu_permille_) * kCpuDecay +
                           now * (1 - kCpuDecay)));
}

}  // namespace weir::rivals
