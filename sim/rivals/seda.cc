#include "weir/rivals/seda.h"

#include <algorithm>

#include "weir/rivals/averages.h"

namespace weir::rivals {
namespace {

// Chosen: short against the period, long against a gap between arrivals.
constexpr double kBurstSeconds = 0.1;

}  // namespace

bool Seda::Admit(const Arrival& arrival) {
  const double burst = std::max(1.0, rate_ * kBurstSeconds);
  tokens_ =
      std::min(tokens_ + rate_ * ToSeconds(arrival.now - refilled_), burst);
  refilled_ = arrival.now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

void Seda::Learn(const Finish& finish) {
  if (!Teaches(finish.outcome)) return;
  responses_.push_back(SinceAdmitted(finish).count());
  if (responses_.size() >= config_.samples ||
      finish.now - adjusted_ >= config_.period) {
    Adjust(finish.now);
  }
}

void Seda::Adjust(Instant now) {
  const auto sample =
      static_cast<double>(NearestRank(responses_, config_.quantile));
  responses_.clear();
  adjusted_ = now;
  current_ns_ =
      config_.smoothing * current_ns_ + (1 - config_.smoothing) * sample;

  const auto target = static_cast<double>(config_.target.count());
  const double error = (current_ns_ - target) / target;
  if (error > 0) {
    rate_ /= config_.decrease;
  } else if (error < config_.increase_below) {
    rate_ -= (error - config_.increase_offset) * config_.increase;
  }
  rate_ = std::clamp(rate_, config_.lowest_rate, config_.highest_rate);
}

}  // namespace weir::rivals
