#include "weir/client/adaptive_throttle.h"

#include <algorithm>
#include <cmath>

#include "../relaxed.h"
#include "weir/splitmix64.h"

namespace weir {
namespace {

// How often a run of accepts that lifts the throttle comes by chance.
constexpr double kLongRunOdds = 50;

// A run must outlast those before it so many times.  Chosen: those of a backend
// that works in windows are all alike, give or take their random half.
constexpr int64_t kOutlast = 2;

// A run that lasts so many times as long as it must ends the history.
// Chosen: the throttle is lifted meanwhile, so it costs nothing to be sure.
constexpr int64_t kForget = 4;

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
  const int64_t calm = Calm(cls, now);
  const int64_t needed = NeededCalm(cls, now);
  const int32_t run = cls.run.load(kRelaxed);
  if (run >= long_run_ && calm >= needed) {
    if (calm / kForget >= needed) cls.counts.Clear(now);
    return Verdict::kPass;
  }
  if (ToUnit(draw) >= ratio) {
    cls.last_pass.store(now.time_since_epoch().count(), kRelaxed);
    return Verdict::kPass;
  }
  const double progress =
      calm < config_.probe_interval.count()
          ? 0
          : std::min(static_cast<double>(run) / long_run_,
                     static_cast<double>(calm) / static_cast<double>(needed));
  if (TakeProbe(cls, progress, now)) return Verdict::kProbe;
  if (config_.mode == StageMode::kEnforce) cls.counts.AddBad(now);
  return Verdict::kRefuse;
}

int64_t AdaptiveThrottle::Calm(const Class& cls, Instant now) {
  return now.time_since_epoch().count() - cls.refused_at.load(kRelaxed);
}

int64_t AdaptiveThrottle::NeededCalm(const Class& cls, Instant now) const {
  const int64_t least = config_.probe_interval.count();
  const int64_t age =
      now.time_since_epoch().count() - cls.calm_at.load(kRelaxed);
  if (age > config_.window.count()) return least;
  return std::max(least, kOutlast * std::min(cls.newer_calm.load(kRelaxed),
                                             cls.older_calm.load(kRelaxed)));
}

// `progress` of a run that lifts the throttle, [0, 1].
bool AdaptiveThrottle::TakeProbe(Class& cls, double progress,
                                 Instant now) const {
  const int64_t at = now.time_since_epoch().count();
  int64_t last = cls.last_pass.load(kRelaxed);
  const int64_t interval =
      config_.probe_interval.count() >> static_cast<int>(kHalvings * progress);
  return at - last >= interval &&
         cls.last_pass.compare_exchange_strong(last, at, kRelaxed);
}

void AdaptiveThrottle::Learn(Criticality criticality, bool accepted,
                             Instant now) {
  if (config_.mode == StageMode::kOff) return;
  Class& cls = classes_[Index(criticality)];
  if (!accepted) {
    cls.counts.AddBad(now);
    NoteRefusal(cls, now);
    return;
  }
  cls.counts.AddGood(now);
  // Nothing is written in a long run, which is the rule.
  if (cls.run.load(kRelaxed) < long_run_) cls.run.fetch_add(1, kRelaxed);
}

void AdaptiveThrottle::NoteRefusal(Class& cls, Instant now) const {
  const int64_t at = now.time_since_epoch().count();
  const int64_t calm = Calm(cls, now);
  // What was calm for longer than anything is remembered has no rhythm.
  if (cls.run.exchange(0, kRelaxed) >= long_run_ &&
      calm >= config_.probe_interval.count() &&
      calm <= config_.window.count()) {
    const bool fresh =
        at - cls.calm_at.load(kRelaxed) <= config_.window.count();
    cls.older_calm.store(fresh ? cls.newer_calm.load(kRelaxed) : 0, kRelaxed);
    cls.newer_calm.store(calm, kRelaxed);
    cls.calm_at.store(at, kRelaxed);
  }
  cls.refused_at.store(at, kRelaxed);
}

}  // namespace weir
