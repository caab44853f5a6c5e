#include "weir/scenario/tally.h"

#include <algorithm>

#include "weir/scenario/capacity.h"
#include "weir/scenario/ideal.h"

namespace weir::scenario {
namespace {

// Steps of the ideal in one step and in one window of Figures::converge.
constexpr size_t kPerShift = std::chrono::milliseconds(100) / kIdealStep;
constexpr size_t kPerWindow = std::chrono::seconds(1) / kIdealStep;
// Share of the ideal that a converged window reaches.
// Source: the definition of the time to converge in docs/scenarios.md.
constexpr double kConverged = .95;

double Ratio(double good, double ideal) {
  if (ideal > 0) return good / ideal;
  return 1;
}

// Service seconds of a mean request at `at`: all stages of all tiers, as often
// as they are visited.
double MeanRequestSeconds(const Scenario& scenario, Duration at) {
  std::vector<double> visits(scenario.tiers.size(), 0);
  visits[0] = 1;
  double seconds = 0;
  for (size_t i = 0; i < scenario.tiers.size(); ++i) {
    const Tier& tier = scenario.tiers[i];
    for (const Call& call : tier.calls) {
      visits[call.tier] += visits[i] * call.times;
    }
    for (size_t k = 0; k < tier.stages.size(); ++k) {
      const Stage& stage = tier.stages[k];
      const double share =
          stage.route ? scenario.routes[*stage.route].share : 1;
      seconds +=
          visits[i] * stage.ratio * share * MeanSeconds(SpanAt(tier, k, at));
    }
  }
  return seconds;
}

void Count(Figures& figures, const Ended& ended) {
  ++figures.offered;
  figures.attempts += ended.attempts;
  switch (ended.ending) {
    case Ending::kGood:
      ++figures.good;
      break;
    case Ending::kLate:
      ++figures.late;
      break;
    case Ending::kShed:
      ++figures.shed;
      break;
    case Ending::kFailed:
      ++figures.failed;
      break;
  }
}

void Sum(Figures& all, const Figures& part) {
  all.offered += part.offered;
  all.good += part.good;
  all.late += part.late;
  all.shed += part.shed;
  all.failed += part.failed;
  all.attempts += part.attempts;
}

void FillLatency(Figures& figures, const Histogram& latency) {
  figures.p50 = latency.Quantile(.5);
  figures.p99 = latency.Quantile(.99);
  figures.p999 = latency.Quantile(.999);
}

void KeepLonger(std::optional<Duration>& kept, std::optional<Duration> other) {
  if (other && (!kept || *other > *kept)) kept = other;
}

}  // namespace

Tally::Tally(const Scenario& scenario, uint64_t seed)
    : scenario_(scenario),
      seed_(seed),
      phases_(scenario.phases.size()),
      classes_(scenario.classes.size()),
      good_work_(scenario.phases.size()) {
  const auto steps = static_cast<size_t>(
      (scenario.length() + kIdealStep - Duration(1)) / kIdealStep);
  steps_.resize(steps);
  offered_.assign(classes_.size(), std::vector<uint32_t>(steps));
  for (size_t i = 0; i < steps; ++i) {
    const Duration middle = kIdealStep * i + kIdealStep / 2;
    capacity_.push_back(CapacityAt(scenario, middle) * ToSeconds(kIdealStep));
    mean_seconds_.push_back(MeanRequestSeconds(scenario, middle));
  }
  for (size_t i = 0; i < phases_.size(); ++i) {
    phases_[i].counts.name = scenario.phases[i].name;
  }
  for (size_t i = 0; i < classes_.size(); ++i) {
    classes_[i].counts.name = Name(scenario.classes[i].criticality);
  }
}

size_t Tally::StepOf(Duration at) const {
  const auto step = static_cast<size_t>(std::max(at, Duration{}) / kIdealStep);
  return std::min(step, steps_.size() - 1);
}

size_t Tally::PhaseOf(size_t step) const {
  size_t phase = 0;
  while (phase + 1 < phases_.size() &&
         scenario_.PhaseStart(phase + 1) <= kIdealStep * step) {
    ++phase;
  }
  return phase;
}

void Tally::Add(const Ended& ended) {
  const size_t arrival = StepOf(ended.at);
  const bool good = ended.ending == Ending::kGood;
  const double work =
      ended.work > Duration{} ? ToSeconds(ended.work) : mean_seconds_[arrival];
  Step& step = steps_[arrival];
  ++step.offered;
  step.work += work;
  ++offered_[ended.cls][arrival];
  if (ended.ending == Ending::kShed) ++step.shed;
  if (!good) ++step.bad;
  // What is answered after the scenario's end belongs to no window.
  if (good && ended.end < scenario_.length()) {
    steps_[StepOf(ended.end)].good_work += work;
  }
  if (good) good_work_[ended.phase] += work;

  Group& phase = phases_[ended.phase];
  Group& cls = classes_[ended.cls];
  const bool measured = scenario_.phases[ended.phase].measured;
  Count(phase.counts, ended);
  if (measured) Count(cls.counts, ended);
  if (good || ended.ending == Ending::kLate) {
    phase.latency.Add(ended.end - ended.at);
    if (measured) cls.latency.Add(ended.end - ended.at);
  }
}

std::vector<Tally::Overload> Tally::FindOverloads() const {
  std::vector<Overload> overloads;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const double offered =
        OfferedAt(scenario_, kIdealStep * i + kIdealStep / 2) *
        ToSeconds(kIdealStep);
    // The margin is for rounding only: a load of exactly 1 is none.
    if (offered <= capacity_[i] * (1 + 1e-9)) continue;
    if (overloads.empty() || overloads.back().to != i) {
      overloads.push_back({i, i});
    }
    overloads.back().to = i + 1;
  }
  return overloads;
}

Duration Tally::Converge(const Overload& overload) const {
  const size_t length = overload.to - overload.from;
  const size_t window = std::min(length, kPerWindow);
  // Going back from the end: the first window that falls short ends it.
  size_t converged = length;
  const size_t last = (length - window) / kPerShift;
  for (size_t shift = last + 1; shift-- > 0;) {
    double good = 0;
    double ideal = 0;
    for (size_t i = 0; i < window; ++i) {
      const size_t step = overload.from + shift * kPerShift + i;
      good += steps_[step].good_work;
      ideal += capacity_[step] * mean_seconds_[step];
    }
    if (good < kConverged * ideal) break;
    converged = shift * kPerShift;
  }
  return kIdealStep * converged;
}

Duration Tally::Recover(const Overload& overload, size_t until) const {
  for (size_t i = until; i > overload.to; --i) {
    if (steps_[i - 1].bad > 0) return kIdealStep * (i - overload.to);
  }
  return {};
}

void Tally::FillSpans(Report& report) const {
  const std::vector<Overload> overloads = FindOverloads();
  for (size_t i = 0; i < overloads.size(); ++i) {
    const Overload& overload = overloads[i];
    const size_t phase = PhaseOf(overload.from);
    const Duration converge = Converge(overload);
    KeepLonger(report.phases[phase].converge, converge);
    if (scenario_.phases[phase].measured) {
      KeepLonger(report.all.converge, converge);
    }
    if (overload.to >= steps_.size()) continue;  // It never ended.
    const size_t until =
        i + 1 < overloads.size() ? overloads[i + 1].from : steps_.size();
    const size_t after = PhaseOf(overload.to);
    const Duration recover = Recover(overload, until);
    KeepLonger(report.phases[after].recover, recover);
    if (scenario_.phases[after].measured) {
      KeepLonger(report.all.recover, recover);
    }
  }
}

void Tally::FillIdeals(Report& report) const {
  const size_t steps = steps_.size();
  std::vector<double> offered(steps);
  std::vector<double> work(steps);
  std::vector<double> work_capacity(steps);
  std::vector<size_t> phase_of(steps);
  for (size_t i = 0; i < steps; ++i) {
    work[i] = steps_[i].work;
    work_capacity[i] = capacity_[i] * mean_seconds_[i];
    phase_of[i] = PhaseOf(i);
  }

  // Most critical first: the ideal of a class is what the ideal does with it
  // and all above it, less what it does with those above.
  std::vector<double> above(steps);
  Ideal ideal;
  for (size_t c = 0; c < classes_.size(); ++c) {
    for (size_t i = 0; i < steps; ++i) offered[i] += offered_[c][i];
    ideal = ComputeIdeal(offered, capacity_, scenario_.deadline);
    for (size_t i = 0; i < steps; ++i) {
      if (scenario_.phases[phase_of[i]].measured) {
        report.classes[c].ideal += ideal.served[i] - above[i];
      }
    }
    above = ideal.served;
  }

  const Ideal by_work = ComputeIdeal(work, work_capacity, scenario_.deadline);
  struct Sums {
    double ideal_work = 0;
    double calm = 0;  // Requests that came while the ideal shed nothing.
    double calm_shed = 0;
  };
  Sums all;
  std::vector<Sums> sums(phases_.size());
  for (size_t i = 0; i < steps; ++i) {
    const size_t phase = phase_of[i];
    report.phases[phase].ideal += ideal.served[i];
    sums[phase].ideal_work += by_work.served[i];
    if (ideal.overload[i]) continue;
    sums[phase].calm += steps_[i].offered;
    sums[phase].calm_shed += steps_[i].shed;
  }

  const auto fill = [](Figures& figures, const Sums& s, double good_work) {
    figures.goodput_ratio =
        Ratio(static_cast<double>(figures.good), figures.ideal);
    figures.work_ratio = Ratio(good_work, s.ideal_work);
    figures.false_shed_ratio = s.calm > 0 ? s.calm_shed / s.calm : 0;
  };
  double good_work = 0;
  for (size_t p = 0; p < phases_.size(); ++p) {
    fill(report.phases[p], sums[p], good_work_[p]);
    if (!scenario_.phases[p].measured) continue;
    report.all.ideal += report.phases[p].ideal;
    all.ideal_work += sums[p].ideal_work;
    all.calm += sums[p].calm;
    all.calm_shed += sums[p].calm_shed;
    good_work += good_work_[p];
  }
  fill(report.all, all, good_work);
  for (Figures& cls : report.classes) {
    cls.goodput_ratio = Ratio(static_cast<double>(cls.good), cls.ideal);
    cls.work_ratio = cls.goodput_ratio;
  }
}

Report Tally::MakeUntil(Duration end) const {
  Scenario played = scenario_;
  played.Truncate(end);
  Tally part(played, seed_);
  std::copy_n(steps_.begin(), part.steps_.size(), part.steps_.begin());
  for (size_t c = 0; c < offered_.size(); ++c) {
    std::copy_n(offered_[c].begin(), part.steps_.size(),
                part.offered_[c].begin());
  }
  std::copy_n(phases_.begin(), part.phases_.size(), part.phases_.begin());
  std::copy_n(good_work_.begin(), part.phases_.size(), part.good_work_.begin());
  part.classes_ = classes_;
  return part.Make();
}

Report Tally::Make() const {
  Report report;
  report.scenario = scenario_.name;
  report.seed = seed_;
  report.all.name = "all";
  Histogram latency;
  for (size_t i = 0; i < phases_.size(); ++i) {
    report.phases.push_back(phases_[i].counts);
    FillLatency(report.phases.back(), phases_[i].latency);
    if (!scenario_.phases[i].measured) continue;
    Sum(report.all, phases_[i].counts);
    latency.Add(phases_[i].latency);
  }
  FillLatency(report.all, latency);
  for (const Group& cls : classes_) {
    report.classes.push_back(cls.counts);
    FillLatency(report.classes.back(), cls.latency);
  }
  FillIdeals(report);
  FillSpans(report);
  return report;
}

}  // namespace weir::scenario
