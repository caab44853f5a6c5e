// Metrics: what was counted, made into figures.

#include <algorithm>
#include <cmath>

#include "metrics.h"

namespace weir::sim {
namespace {

void AddCounts(scenario::Figures& to, const scenario::Figures& from) {
  to.offered += from.offered;
  to.good += from.good;
  to.late += from.late;
  to.shed += from.shed;
  to.failed += from.failed;
  to.attempts += from.attempts;
}

double Ratio(double good, double ideal) { return ideal > 0 ? good / ideal : 1; }

}  // namespace

// Settles the phases before `phase`.  The due of a client is the smaller of
// what it asked for and the level up to which all are filled when the class's
// goodput is poured over their demands.  It is settled by phase, as nobody has
// a right to what others left in another.
void Metrics::ShareOut(size_t phase) {
  if (phase <= shared_out_) return;
  shared_out_ = phase;
  for (std::vector<Client>& clients : clients_) {
    std::vector<uint32_t> demands;
    double left = 0;
    for (const Client& client : clients) {
      const uint32_t demand = client.offered - client.past_offered;
      if (demand > 0) demands.push_back(demand);
      left += client.good - client.past_good;
    }
    std::sort(demands.begin(), demands.end());
    double level = 0;
    for (size_t i = 0; i < demands.size(); ++i) {
      level = left / static_cast<double>(demands.size() - i);
      if (demands[i] > level) break;
      left -= demands[i];
      level = demands[i];
    }
    for (Client& client : clients) {
      const double demand = client.offered - client.past_offered;
      client.past_due += std::min(demand, level);
      client.past_offered = client.offered;
      client.past_good = client.good;
    }
  }
}

// Over what each client of a class got, as a share of its due.
double Metrics::Fairness() const {
  double least = 1;
  for (const std::vector<Client>& clients : clients_) {
    double asked = 0;
    double good = 0;
    double sum = 0;
    double squares = 0;
    for (const Client& client : clients) {
      if (client.offered < kMinForFairness) continue;
      ++asked;
      good += client.good;
      const double share =
          client.past_due > 0 ? client.good / client.past_due : 0;
      sum += share;
      squares += share * share;
    }
    // Too little was done for this class to be shared out.
    if (asked < 2 || good < kMinForFairness * asked) continue;
    least = std::min(least, sum * sum / (asked * squares));
  }
  return least;
}

void Metrics::Fill(scenario::Figures& figures, const Group& group) const {
  figures.ideal = group.ideal.requests;
  figures.goodput_ratio = Ratio(group.good.requests, group.ideal.requests);
  figures.work_ratio = Ratio(group.good.work, group.ideal.work);
  figures.false_shed_ratio = group.calm_attempts == 0
                                 ? 0
                                 : static_cast<double>(group.calm_shed) /
                                       static_cast<double>(group.calm_attempts);
  figures.p50 = group.latency.Quantile(.5);
  figures.p99 = group.latency.Quantile(.99);
  figures.p999 = group.latency.Quantile(.999);
}

Outcomes Metrics::Make(uint64_t events, uint64_t unanswered) const {
  Outcomes outcomes;
  outcomes.events = events;
  outcomes.unanswered = unanswered;
  scenario::Report& report = outcomes.report;
  report.scenario = scenario_.name;
  report.seed = seed_;

  // The last overload and recovery may still be open.
  Metrics closed = *this;
  const Duration end = phase_ends_.back();
  if (closed.overload_) {
    closed.EndOverload(end);
    // Whether the newest would have been served is not known.
    closed.last_loss_ = Duration::max();
    closed.last_loss_since_ = Duration{};
  }
  closed.EndRecovery(end);
  closed.AgeUntil(oldest_young_ + static_cast<int64_t>(young_.size()));
  closed.CloseInversions(Duration::max());

  Group all;
  double unsteady = 0;
  double unsteady_weight = 0;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const Group& phase = closed.phases_[i];
    report.phases.push_back(phase.counts);
    Fill(report.phases.back(), phase);
    if (!scenario_.phases[i].measured) continue;
    AddCounts(all.counts, phase.counts);
    all.latency.Add(phase.latency);
    all.good.work += phase.good.work;
    all.good.requests += phase.good.requests;
    all.ideal.work += phase.ideal.work;
    all.ideal.requests += phase.ideal.requests;
    all.calm_attempts += phase.calm_attempts;
    all.calm_shed += phase.calm_shed;
    if (phase.counts.converge) {
      Lengthen(all.counts.converge, *phase.counts.converge);
    }
    if (phase.counts.recover) {
      Lengthen(all.counts.recover, *phase.counts.recover);
    }
    const Moments& m = steadiness_[i];
    if (m.count > 1 && m.sum > 0) {
      const double mean = m.sum / m.count;
      const double variance = std::max(0., m.squares / m.count - mean * mean);
      unsteady += m.count * std::sqrt(variance) / mean;
      unsteady_weight += m.count;
    }
  }
  report.all = all.counts;
  report.all.name = "all";
  Fill(report.all, all);
  for (const Group& group : closed.classes_) {
    report.classes.push_back(group.counts);
    Fill(report.classes.back(), group);
  }
  if (spent_ > Duration{}) {
    report.wasted_ratio = 1 - ToSeconds(useful_) / ToSeconds(spent_);
  }

  closed.ShareOut(phases_.size());
  outcomes.fairness = closed.Fairness();
  if (!scenario_.clients.hogs.empty()) {
    double good = 0;
    double offered = 0;
    for (const std::vector<Client>& clients : clients_) {
      for (size_t i = 0; i < static_cast<size_t>(scenario_.clients.count);
           ++i) {
        good += clients[i].good;
        offered += clients[i].offered;
      }
    }
    outcomes.others_good_ratio = Ratio(good, offered);
  }
  outcomes.inversions_per_1000 =
      closed.admitted_ == 0 ? 0
                            : 1000. * static_cast<double>(closed.inversions_) /
                                  static_cast<double>(closed.admitted_);
  outcomes.unsteadiness = unsteady_weight > 0 ? unsteady / unsteady_weight : 0;
  report.fairness = outcomes.fairness;
  report.others_good_ratio = outcomes.others_good_ratio;
  report.inversions_per_1000 = outcomes.inversions_per_1000;
  report.unsteadiness = outcomes.unsteadiness;
  outcomes.series = series_;
  for (Bin& bin : outcomes.series) {
    const double seconds = ToSeconds(bin_);
    bin.offered /= seconds;
    bin.good /= seconds;
    bin.ideal /= seconds;
    bin.late /= seconds;
    for (double& shed : bin.shed) shed /= seconds;
  }
  return outcomes;
}

}  // namespace weir::sim
