#include "metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "weir/scenario/capacity.h"

namespace weir::sim {

using scenario::Ending;

namespace {

// A second counts as good from this share of the ideal on.
// Source: the evaluation rules in docs/algorithms/evaluation.md.
constexpr double kConverged = 0.95;

Duration Since(Instant now) { return now.time_since_epoch(); }

// Steps that must be kept: a second, what the oracle lags, and the open ones.
size_t StepsToKeep(Duration deadline) {
  const Duration lag = 2 * (deadline + deadline / 100);
  return static_cast<size_t>((std::chrono::seconds(1) + lag) / Metrics::kStep) +
         4;
}

}  // namespace

Metrics::Metrics(const scenario::Scenario& scenario, uint64_t seed,
                 Duration bin)
    : scenario_(scenario),
      seed_(seed),
      bin_(bin),
      deadline_(std::max_element(scenario.classes.begin(),
                                 scenario.classes.end(),
                                 [](const auto& a, const auto& b) {
                                   return a.deadline < b.deadline;
                                 })
                    ->deadline),
      phases_(scenario.phases.size()),
      classes_(scenario.classes.size()),
      young_(static_cast<size_t>(3 * deadline_ / kYoung) + 6),
      step_good_(StepsToKeep(deadline_)),
      step_ideal_(step_good_.size()),
      steadiness_(scenario.phases.size()) {
  const size_t classes = scenario.classes.size();
  for (size_t i = 0; i < phases_.size(); ++i) {
    phases_[i].counts.name = scenario.phases[i].name;
    phase_ends_.push_back(scenario.PhaseStart(i + 1));
  }
  for (size_t i = 0; i < classes; ++i) {
    classes_[i].counts.name = Name(scenario.classes[i].criticality);
  }
  for (Young& young : young_) {
    young.attempts.resize(classes);
    young.shed.resize(classes);
  }
  window_.admitted.resize(classes);
  window_.shed.resize(classes);
  FindParties();
  if (bin_ == Duration{}) return;
  for (Duration at{}; at < phase_ends_.back(); at += bin_) {
    series_.emplace_back().at = at;
    series_.back().shed.resize(classes);
  }
}

// Hogs of which each asks so seldom that nothing can be said of it alone are
// one party: somebody who takes many names is still one.
void Metrics::FindParties() {
  auto first = static_cast<uint32_t>(scenario_.clients.count);
  auto parties = first;
  for (const scenario::Hog& hog : scenario_.clients.hogs) {
    const Duration end =
        std::min(hog.until.value_or(scenario_.length()), scenario_.length());
    const double each = hog.load * scenario::CapacityAt(scenario_, {}) *
                        ToSeconds(std::max(end - hog.from, Duration{})) /
                        hog.count;
    const auto count = static_cast<uint32_t>(hog.count);
    parties_.push_back({first, parties, each < kMinForFairness});
    first += count;
    parties += parties_.back().one ? 1 : count;
  }
  parties_.push_back({first, parties, false});  // Closed clients.
  const uint32_t closed =
      static_cast<uint32_t>(scenario_.ClientCount()) - first;
  clients_.assign(classes_.size(), std::vector<Client>(parties + closed));
}

Metrics::Client& Metrics::PartyOf(const scenario::Arrival& arrival) {
  uint32_t party = arrival.client;
  for (const Parties& parties : parties_) {
    if (arrival.client < parties.first_client) break;
    party = parties.first_party +
            (parties.one ? 0 : arrival.client - parties.first_client);
  }
  return clients_[arrival.cls][party];
}

Metrics::Sum& Metrics::StepGood(Duration at) {
  return step_good_[static_cast<size_t>(at / kStep) % step_good_.size()];
}

Metrics::Sum& Metrics::StepIdeal(Duration at) {
  return step_ideal_[static_cast<size_t>(at / kStep) % step_ideal_.size()];
}

Bin* Metrics::BinAt(Duration at) {
  if (series_.empty() || at >= phase_ends_.back()) return nullptr;
  return &series_[static_cast<size_t>(at / bin_)];
}

size_t Metrics::PhaseAt(Duration at) {
  while (phase_ > 0 && at < phase_ends_[phase_ - 1]) --phase_;
  while (phase_ + 1 < phases_.size() && at >= phase_ends_[phase_]) ++phase_;
  return phase_;
}

void Metrics::OnArrival(const Operation& operation) {
  const auto& arrival = operation.arrival;
  if (Bin* bin = BinAt(arrival.at)) bin->offered += 1;
  ++phases_[arrival.phase].counts.offered;
  ShareOut(arrival.phase);
  if (!scenario_.phases[arrival.phase].measured) return;
  ++classes_[arrival.cls].counts.offered;
  ++PartyOf(arrival).offered;
}

void Metrics::OnAttempt(const Visit& visit, const Operation& operation) {
  const auto& arrival = operation.arrival;
  ++phases_[arrival.phase].counts.attempts;
  if (scenario_.phases[arrival.phase].measured) {
    ++classes_[arrival.cls].counts.attempts;
  }
  Young& young = YoungAt(Since(visit.sent));
  young.phase = arrival.phase;
  ++young.attempts[arrival.cls];
}

// To whoever asked it is a refusal like any other.
void Metrics::OnHeld(const Operation& operation, Instant now) {
  const auto& arrival = operation.arrival;
  Young& young = YoungAt(Since(now));
  young.phase = arrival.phase;
  ++young.attempts[arrival.cls];
  ++young.shed[arrival.cls];
  if (Bin* bin = BinAt(Since(now))) bin->shed[arrival.cls] += 1;
}

void Metrics::OnAdmitted(const Visit& visit, Instant now) {
  CloseInversions(Since(now));
  ++window_.admitted[visit.cls];
}

void Metrics::OnShed(const Visit& visit, Instant now) {
  CloseInversions(Since(now));
  ++window_.shed[visit.cls];
  if (Bin* bin = BinAt(Since(now))) bin->shed[visit.cls] += 1;
  // Older ones were given an answer long after their deadline; that they were
  // late is counted elsewhere.
  if (Since(visit.sent) / kYoung >= oldest_young_) {
    ++YoungAt(Since(visit.sent)).shed[visit.cls];
  }
}

void Metrics::OnAnswer(const Visit& visit, const Operation& operation,
                       bool good, Instant now) {
  const auto& arrival = operation.arrival;
  const Duration latency = now - visit.sent;
  if (!series_.empty()) bin_latency_.Add(latency);
  // What came after the end is in no figure of throughput or latency: the
  // world runs dry then, which no service does.
  if (Since(now) >= phase_ends_.back()) return;
  phases_[arrival.phase].latency.Add(latency);
  const bool measured = scenario_.phases[arrival.phase].measured;
  if (measured) classes_[arrival.cls].latency.Add(latency);
  if (!good) return;
  const double work = ToSeconds(operation.work);
  StepGood(Since(now)).work += work;
  if (Bin* bin = BinAt(Since(now))) bin->good += 1;
  const size_t phase = PhaseAt(Since(now));
  phases_[phase].good.work += work;
  phases_[phase].good.requests += 1;
  if (scenario_.phases[phase].measured) {
    classes_[arrival.cls].good.work += work;
    classes_[arrival.cls].good.requests += 1;
  }
}

void Metrics::OnEnded(const Operation& operation, Ending ending, Instant now) {
  const auto& arrival = operation.arrival;
  const auto count = [ending](scenario::Figures& counts) {
    switch (ending) {
      case Ending::kGood:
        ++counts.good;
        return;
      case Ending::kLate:
        ++counts.late;
        return;
      case Ending::kShed:
        ++counts.shed;
        return;
      case Ending::kFailed:
        ++counts.failed;
        return;
    }
  };
  count(phases_[arrival.phase].counts);
  if (ending != Ending::kGood) OnBad(Since(now));
  if (ending == Ending::kLate) {
    if (Bin* bin = BinAt(Since(now))) bin->late += 1;
  }
  if (!scenario_.phases[arrival.phase].measured) return;
  count(classes_[arrival.cls].counts);
  if (ending == Ending::kGood) ++PartyOf(arrival).good;
}

void Metrics::OnSpent(Duration spent, bool useful) {
  spent_ += spent;
  if (useful) useful_ += spent;
}

void Metrics::OnIdeal(Duration slot, size_t cls, double work, double requests) {
  const size_t phase = PhaseAt(slot);
  if (slot >= phase_ends_.back()) return;
  StepIdeal(slot).work += work;
  if (Bin* bin = BinAt(slot)) bin->ideal += requests;
  phases_[phase].ideal.work += work;
  phases_[phase].ideal.requests += requests;
  if (scenario_.phases[phase].measured) {
    classes_[cls].ideal.work += work;
    classes_[cls].ideal.requests += requests;
  }
}

void Metrics::OnIdealLoss(Duration arrived, Duration since) {
  if (arrived > last_loss_) {
    last_loss_ = arrived;
    last_loss_since_ = since;
  }
  if (arrived >= phase_ends_.back()) return;
  if (!overload_) {
    EndRecovery(since);
    overload_ = Overload{since, arrived, kUnknown, PhaseAt(since), {}};
  } else if (arrived > overload_->last) {
    overload_->last = arrived;
    overload_->recovered.reset();
  }
}

// The slice of time that `at` lies in, made new if nothing is older than it.
Metrics::Young& Metrics::YoungAt(Duration at) {
  return young_[static_cast<size_t>(at / kYoung) % young_.size()];
}

// Whether the oracle gave up any of those that came at a time is known two
// deadlines later, unless the overload is so slight that it takes longer to
// show; a refusal may come one deadline later.
void Metrics::AgeUntil(int64_t keep) {
  for (; oldest_young_ < keep; ++oldest_young_) {
    const Duration start = kYoung * oldest_young_;
    Young& young = YoungAt(start);
    // What came within a deadline before an overload may still wait in it.
    const bool calm =
        last_loss_ < start || last_loss_since_ > start + deadline_;
    Group& phase = phases_[young.phase];
    for (size_t cls = 0; cls < classes_.size(); ++cls) {
      if (calm) {
        phase.calm_attempts += young.attempts[cls];
        phase.calm_shed += young.shed[cls];
        if (scenario_.phases[young.phase].measured) {
          classes_[cls].calm_attempts += young.attempts[cls];
          classes_[cls].calm_shed += young.shed[cls];
        }
      }
      young.attempts[cls] = young.shed[cls] = 0;
    }
  }
}

void Metrics::CloseInversions(Duration at) {
  const int64_t index = at / kInversion;
  if (index == window_index_) return;
  window_index_ = index;
  bool more_critical_shed = false;
  for (size_t cls = 0; cls < window_.admitted.size(); ++cls) {
    if (more_critical_shed) inversions_ += window_.admitted[cls];
    admitted_ += window_.admitted[cls];
    more_critical_shed = more_critical_shed || window_.shed[cls] > 0;
    window_.admitted[cls] = window_.shed[cls] = 0;
  }
}

void Metrics::CloseStep(Instant now, const Gauges& gauges,
                        Duration oracle_lag) {
  const Duration end = Since(now);
  AgeUntil((end - 2 * deadline_) / kYoung - 2);

  const size_t phase = PhaseAt(end - kStep);
  const Duration start = phase == 0 ? Duration{} : phase_ends_[phase - 1];
  if (end - kStep >= start + 2 * kSecond && end <= phase_ends_.back()) {
    const double work = StepGood(end - kStep).work;
    steadiness_[phase].count += 1;
    steadiness_[phase].sum += work;
    steadiness_[phase].squares += work * work;
  }
  const Duration judged = (end - oracle_lag) / kStep * kStep;
  if (judged >= kSecond && judged <= phase_ends_.back()) JudgeSecond(judged);
  const Duration known = end - oracle_lag;
  if (overload_ && known - overload_->last > kSecond) EndOverload(known);
  if (recovering_since_ && end - last_bad_ > kSecond) EndRecovery(end);
  StepGood(end) = StepIdeal(end) = Sum{};

  if (Bin* bin = BinAt(end - kStep);
      bin != nullptr && end % bin_ == Duration{}) {
    bin->p50 = bin_latency_.Quantile(.5);
    bin->p99 = bin_latency_.Quantile(.99);
    bin->limit = gauges.limit;
    bin->best_limit = gauges.best_limit;
    bin->waiting = gauges.waiting;
    bin_latency_ = scenario::Histogram();
  }
}

void Metrics::JudgeSecond(Duration end) {
  const Duration start = end - kSecond;
  if (!overload_ || start + kStep <= overload_->from ||
      end > overload_->last + kStep) {
    return;
  }
  double good = 0;
  double ideal = 0;
  for (Duration at = start; at < end; at += kStep) {
    good += StepGood(at).work;
    ideal += StepIdeal(at).work;
  }
  if (good < kConverged * ideal) {
    overload_->converged = kUnknown;
  } else if (overload_->converged == kUnknown) {
    overload_->converged = std::max(start, overload_->from);
  }
}

void Metrics::EndOverload(Duration now) {
  const Overload& overload = *overload_;
  // Shorter ones have no second to be judged by.
  if (overload.last - overload.from >= kSecond) {
    const Duration took = overload.converged == kUnknown
                              ? overload.last - overload.from
                              : overload.converged - overload.from;
    Lengthen(phases_[overload.phase].counts.converge, took);
  }
  recovering_since_ = overload.last;
  recovering_phase_ = PhaseAt(now);
  const std::optional<Duration> recovered = overload.recovered;
  overload_.reset();
  if (recovered) EndRecovery(*recovered);
}

void Metrics::OnBad(Duration at) {
  if (overload_ && !overload_->recovered) {
    const Duration quiet_since = std::max(last_bad_, overload_->last);
    if (at - quiet_since > kSecond) overload_->recovered = quiet_since;
  }
  last_bad_ = std::max(last_bad_, at);
}

void Metrics::EndRecovery(Duration until) {
  if (!recovering_since_) return;
  const Duration bad = std::min(last_bad_, until);
  Lengthen(phases_[recovering_phase_].counts.recover,
           std::max(bad - *recovering_since_, Duration{}));
  recovering_since_.reset();
}

}  // namespace weir::sim
