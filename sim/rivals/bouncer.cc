#include "weir/rivals/bouncer.h"

#include "weir/rivals/averages.h"
#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

constexpr size_t kKept = 512;
constexpr int64_t kRefreshEvery = 64;
// Chosen: the mean of about the last hundred requests.
constexpr double kMeanFactor = 0.02;

}  // namespace

bool Bouncer::Admit(const Arrival& arrival) {
  if (ToUnit(arrival.draw) < config_.allowance) return true;
  const auto known = kinds_.find(arrival.kind);
  if (known == kinds_.end()) return true;
  const Duration wait(
      static_cast<int64_t>(arrival.queued * mean_ns_ / config_.processors));
  return wait + known->second.p50 <= config_.slo_p50 &&
         wait + known->second.p90 <= config_.slo_p90;
}

void Bouncer::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome)) return;
  const int64_t latency = finish.latency.count();
  const auto real = static_cast<double>(latency);
  mean_ns_ += mean_ns_ == 0 ? real : kMeanFactor * (real - mean_ns_);

  Kind& kind = kinds_[finish.kind];
  if (kind.latencies.size() < kKept) {
    kind.latencies.push_back(latency);
  } else {
    kind.latencies[static_cast<size_t>(kind.count) % kKept] = latency;
  }
  if (kind.count++ % kRefreshEvery != 0) return;
  std::vector<int64_t> sorted = kind.latencies;
  kind.p50 = Duration(NearestRank(sorted, 0.5));
  kind.p90 = Duration(NearestRank(sorted, 0.9));
}

}  // namespace weir::rivals
