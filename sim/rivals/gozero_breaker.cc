#include "weir/rivals/gozero_breaker.h"

#include <algorithm>

#include "weir/splitmix64.h"

namespace weir::rivals {

bool GoZeroBreaker::Admit(const Arrival& arrival) {
  int64_t total = 0;
  int64_t accepts = 0;
  int32_t working = 0;
  int32_t failing = 0;
  window_.ForEachInOrder(arrival.now, [&](const Tally& bucket) {
    total += bucket.count;
    accepts += bucket.hits;
    if (bucket.sum > 0) {
      working = 0;
    } else if (bucket.hits > 0) {
      ++working;
    }
    if (bucket.hits > 0) {
      failing = 0;
    } else if (bucket.sum > 0) {
      ++failing;
    }
  });
  const double buckets = config_.buckets;
  const double k =
      std::max(config_.least_k,
               config_.k - (config_.k - config_.least_k) * failing / buckets);
  double ratio = (static_cast<double>(total - config_.protection) -
                  k * static_cast<double>(accepts)) /
                 static_cast<double>(total + 1);
  if (ratio <= 0) return true;
  if (last_pass_ > Instant::min() &&
      arrival.now - last_pass_ > config_.forced_pass) {
    last_pass_ = arrival.now;
    return true;
  }
  ratio *= (buckets - working) / buckets;
  if (ToUnit(arrival.draw) < ratio) {
    window_.Add(arrival.now, {.count = 1});
    return false;
  }
  last_pass_ = arrival.now;
  return true;
}

void GoZeroBreaker::Learn(const Finish& finish) {
  const bool good = finish.outcome == Outcome::kOk;
  window_.Add(finish.now,
              {.count = 1, .hits = good ? 1 : 0, .sum = good ? 0 : 1});
}

}  // namespace weir::rivals
