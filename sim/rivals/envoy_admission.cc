#include "weir/rivals/envoy_admission.h"

#include <algorithm>
#include <cmath>

namespace weir::rivals {
namespace {

constexpr Duration kSlice = std::chrono::seconds(1);
// Source: [ENVOY-ADMISSION], probabilities are compared to four digits.
constexpr uint64_t kAccuracy = 10'000;

}  // namespace

double EnvoyAdmission::RefusalRatio(const Config& config,
                                    const Counts& counts) {
  const auto total = static_cast<double>(counts.requests);
  const auto successes = static_cast<double>(counts.successes);
  double ratio =
      std::max(0.0, (total - successes / config.threshold) / (total + 1));
  if (config.aggression != 1.0) ratio = std::pow(ratio, 1 / config.aggression);
  return std::min(ratio, config.ceiling);
}

bool EnvoyAdmission::Admit(const Arrival& arrival) {
  if (average_rps(arrival.now) < config_.least_rps) return true;
  const double ratio = RefusalRatio(config_, counts(arrival.now));
  return kAccuracy * ratio <= static_cast<double>(arrival.draw % kAccuracy);
}

void EnvoyAdmission::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome)) return;
  Forget(finish.now);
  if (slices_.empty() || finish.now - slices_.back().from >= kSlice) {
    slices_.push_back({finish.now, {}});
  }
  const int64_t success = finish.outcome == Outcome::kOk ? 1 : 0;
  for (Counts* counts : {&slices_.back().counts, &total_}) {
    ++counts->requests;
    counts->successes += success;
  }
}

EnvoyAdmission::Counts EnvoyAdmission::counts(Instant now) {
  Forget(now);
  return total_;
}

int64_t EnvoyAdmission::average_rps(Instant now) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(config_.window).count();
  return counts(now).requests / std::max<int64_t>(seconds, 1);
}

void EnvoyAdmission::Forget(Instant now) {
  while (!slices_.empty() && now - slices_.front().from >= config_.window) {
    total_.requests -= slices_.front().counts.requests;
    total_.successes -= slices_.front().counts.successes;
    slices_.pop_front();
  }
}

}  // namespace weir::rivals
