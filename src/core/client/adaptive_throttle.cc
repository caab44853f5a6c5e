#include "weir/client/adaptive_throttle.h"

#include <algorithm>
#include <cmath>

#include "../relaxed.h"
#include "weir/splitmix64.h"

namespace weir {
namespace {

// How often a run of accepts that ends the history comes by chance.
constexpr double kLongRunOdds = 50;

// How often the time to the next probe is halved while a run grows long: at its
// end it is under a thousandth.
constexpr int32_t kHalvings = 10;

}  // namespace

std::optional<Error> AdaptiveThrottle::Config::Check() const {
  using std::chrono::hours, std::chrono::milliseconds, std::chrono::minutes,
      std::chrono::seconds;
  if (!(k >= 1.01 && k <= 10)) {
    return Error{"`throttle.k` must lie between 1.01 and 10"};
  }
  if (window < seconds(1) || window > hours(1)) {
    return Error{"`throttle.window` must lie between 1s and 1h"};
  }
  if (least_requests < 0) {
    return Error{"`throttle.least_requests` must not be below 0"};
  }
  if (probe_interval < milliseconds(1) || probe_interval > minutes(1)) {
    return Error{"`throttle.probe_interval` must lie between 1ms and 1m"};
  }
  return std::nullopt;
}

AdaptiveThrottle::AdaptiveThrottle(const Config& config)
    : config_(config),
      long_run_(static_cast<int32_t>(
          std::ceil(std::log(kLongRunOdds) / std::log(config.k)))),
      classes_{Class(config.window), Class(config.window), Class(config.window),
               Class(config.window)} {}

double AdaptiveThrottle::RefusalRatio(double k, int64_t requests,
                                      int64_t accepts) {
  const auto asked = static_cast<double>(requests);
  return std::max(0.0,
                  (asked - k * static_cast<double>(accepts)) / (asked + 1));
}

double AdaptiveThrottle::RefusalRatio(Criticality criticality,
                                      Instant now) const {
  const RollingCounts::Sums sums = classes_[Index(criticality)].counts.Sum(now);
  if (sums.all() < config_.least_requests) return 0;
  return RefusalRatio(config_.k, sums.all(), sums.good);
}

AdaptiveThrottle::Verdict AdaptiveThrottle::Admit(Criticality criticality,
                                                  Instant now, uint64_t draw) {
  if (config_.mode == StageMode::kOff) return Verdict::kPass;
  const double ratio = RefusalRatio(criticality, now);
  if (ratio <= 0) return Verdict::kPass;
  Class& cls = classes_[Index(criticality)];
  const int32_t run = CalmRun(cls, now);
  if (run >= long_run_) {
    cls.counts.Clear(now);
    return Verdict::kPass;
  }
  if (ToUnit(draw) >= ratio) {
    cls.last_pass.store(now.time_since_epoch().count(), kRelaxed);
    return Verdict::kPass;
  }
  if (TakeProbe(cls, run, now)) return Verdict::kProbe;
  if (config_.mode == StageMode::kEnforce) cls.counts.AddBad(now);
  return Verdict::kRefuse;
}

int32_t AdaptiveThrottle::CalmRun(const Class& cls, Instant now) const {
  const int64_t calm =
      now.time_since_epoch().count() - cls.refused_at.load(kRelaxed);
  return calm < config_.probe_interval.count() ? 0 : cls.run.load(kRelaxed);
}

bool AdaptiveThrottle::TakeProbe(Class& cls, int32_t run, Instant now) const {
  const int64_t at = now.time_since_epoch().count();
  int64_t last = cls.last_pass.load(kRelaxed);
  const int64_t interval =
      config_.probe_interval.count() >> (kHalvings * run / long_run_);
  return at - last >= interval &&
         cls.last_pass.compare_exchange_strong(last, at, kRelaxed);
}

void AdaptiveThrottle::Learn(Criticality criticality, bool accepted,
                             Instant now) {
  if (config_.mode == StageMode::kOff) return;
  Class& cls = classes_[Index(criticality)];
  if (!accepted) {
    cls.counts.AddBad(now);
    cls.run.store(0, kRelaxed);
    cls.refused_at.store(now.time_since_epoch().count(), kRelaxed);
    return;
  }
  cls.counts.AddGood(now);
  // Nothing is written in a long run, which is the rule.
  if (cls.run.load(kRelaxed) < long_run_) cls.run.fetch_add(1, kRelaxed);
}

}  // namespace weir
