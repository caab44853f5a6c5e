#include "weir/sim/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "text.h"
#include "weir/request.h"
#include "weir/scenario/report.h"
#include "weir/sim/study.h"
#include "weir/time.h"

namespace weir::sim_report {
namespace {

double Milliseconds(Duration d) { return ToSeconds(d) * 1e3; }

std::string ServiceText(const scenario::Scenario& scenario) {
  std::string text;
  for (const scenario::Tier& tier : scenario.tiers) {
    text += fmt::format(
        "{}{}: {}{} workers", text.empty() ? "" : "; ", tier.name,
        tier.replicas > 1 ? fmt::format("{} replicas of ", tier.replicas) : "",
        tier.workers);
    for (const scenario::Stage& stage : tier.stages) {
      text +=
          fmt::format(", {} of {}", stage.name.empty() ? "a step" : stage.name,
                      OfMilliseconds(Milliseconds(stage.time.mean)));
    }
  }
  return text;
}

std::string RetriesText(const scenario::Retries& retries) {
  if (retries.count == 0) return "none";
  std::string text =
      fmt::format("{} at {} layer{}", retries.count, retries.layers,
                  retries.layers == 1 ? "" : "s");
  if (retries.budget_ratio > 0) {
    text += fmt::format(", budget {:.6g}", retries.budget_ratio);
  }
  return text;
}

Series SeriesOf(const std::vector<sim::Bin>& bins, size_t classes) {
  Series series;
  series.shed.resize(bins.empty() ? 0 : classes);
  for (const sim::Bin& bin : bins) {
    series.good.push_back(bin.good);
    series.p99_ms.push_back(bin.p99 > Duration{}
                                ? Milliseconds(bin.p99)
                                : std::numeric_limits<double>::quiet_NaN());
    series.limit.push_back(bin.limit);
    series.waiting.push_back(static_cast<double>(bin.waiting));
    for (size_t cls = 0; cls < classes; ++cls) {
      series.shed[cls].push_back(cls < bin.shed.size() ? bin.shed[cls] : 0);
    }
  }
  return series;
}

std::optional<Spread> SpreadOf(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1
                            ? values[middle]
                            : (values[middle - 1] + values[middle]) / 2;
  return Spread{median, values.front(), values.back()};
}

std::optional<Spread> GoodOfClass(const std::vector<sim::Outcomes>& runs,
                                  size_t cls) {
  std::vector<double> values;
  for (const sim::Outcomes& run : runs) {
    if (cls >= run.report.classes.size()) continue;
    const scenario::Figures& figures = run.report.classes[cls];
    if (figures.offered == 0) continue;
    values.push_back(static_cast<double>(figures.good) /
                     static_cast<double>(figures.offered));
  }
  return SpreadOf(std::move(values));
}

// A bound without a goal is its own; one with two sides is two.
std::vector<Goal> GoalsOf(const scenario::Bound& bound) {
  std::vector<Goal> goals;
  const std::string name = scenario::NameOf(bound);
  if (bound.min) goals.push_back({name, bound.goal.value_or(*bound.min), true});
  if (bound.max)
    goals.push_back({name, bound.goal.value_or(*bound.max), false});
  return goals;
}

void AddGoals(const scenario::Scenario& scenario,
              const std::vector<sim::Outcomes>& runs, Algorithm& algorithm) {
  for (const scenario::Bound& bound : scenario.bounds) {
    std::vector<double> values;
    for (const sim::Outcomes& run : runs) {
      if (const auto value = scenario::ValueOf(run.report, bound)) {
        values.push_back(*value);
      }
    }
    algorithm.at_goals.insert(algorithm.at_goals.end(), GoalsOf(bound).size(),
                              SpreadOf(std::move(values)));
  }
  for (const sim::Outcomes& run : runs) {
    if (!scenario::BrokenBounds(scenario, run.report).empty()) {
      ++algorithm.seeds_broken;
    }
  }
}

Algorithm AlgorithmOf(const scenario::Scenario& scenario,
                      const std::string& name,
                      const std::vector<sim::Outcomes>& runs) {
  Algorithm algorithm;
  algorithm.name = name;
  algorithm.mutant = name.starts_with("mutant-");
  algorithm.rival = !name.starts_with("weir") && !algorithm.mutant;
  for (const std::string_view figure : Figures()) {
    const auto spread = sim::SpreadOf(runs, figure);
    // Nothing was answered: there is no latency.
    const bool none =
        figure.starts_with("latency") && spread && spread->median <= 0;
    if (spread && !none) {
      algorithm.figures.emplace(
          figure, Spread{spread->median, spread->least, spread->most});
    }
  }
  const size_t classes = scenario.classes.size();
  for (size_t cls = 0; cls < classes; ++cls) {
    algorithm.class_good_ratio.push_back(GoodOfClass(runs, cls));
  }
  if (!runs.empty()) algorithm.series = SeriesOf(runs[0].series, classes);
  AddGoals(scenario, runs, algorithm);
  return algorithm;
}

}  // namespace

Study Describe(const scenario::Scenario& scenario,
               const std::vector<std::string>& names,
               const std::vector<uint64_t>& seeds,
               const std::vector<std::vector<sim::Outcomes>>& results,
               std::string command) {
  Study study;
  study.name = scenario.name;
  study.description = scenario.description;
  study.facts = {{"Service", ServiceText(scenario)},
                 {"Deadline", OfMilliseconds(Milliseconds(scenario.deadline))},
                 {"Retries", RetriesText(scenario.retries)}};
  study.command = std::move(command);
  study.seeds = seeds;
  study.deadline_ms = Milliseconds(scenario.deadline);
  for (const scenario::Class& cls : scenario.classes) {
    study.classes.emplace_back(Name(cls.criticality));
  }
  for (size_t i = 0; i < scenario.phases.size(); ++i) {
    study.phases.push_back(
        {scenario.phases[i].name, ToSeconds(scenario.PhaseStart(i))});
  }
  for (size_t i = 0; i < names.size(); ++i) {
    study.algorithms.push_back(AlgorithmOf(scenario, names[i], results[i]));
  }
  for (const scenario::Bound& bound : scenario.bounds) {
    for (Goal& goal : GoalsOf(bound)) study.goals.push_back(std::move(goal));
  }
  if (results.empty() || results[0].empty()) return study;
  for (const sim::Outcomes& run : results[0]) {
    study.requests += run.report.all.offered;
  }
  const std::vector<sim::Bin>& bins = results[0][0].series;
  if (bins.size() > 1) study.bin_s = ToSeconds(bins[1].at - bins[0].at);
  for (const sim::Bin& bin : bins) {
    study.offered.push_back(bin.offered);
    study.ideal.push_back(bin.ideal);
    study.best_limit.push_back(bin.best_limit);
  }
  // The bounds of a scenario are for the first algorithm.
  for (const sim::Outcomes& run : results[0]) {
    for (const std::string& bound :
         scenario::BrokenBounds(scenario, run.report)) {
      study.algorithms[0].broken.push_back(
          fmt::format("seed {}, {}", run.report.seed, bound));
    }
  }
  return study;
}

}  // namespace weir::sim_report
