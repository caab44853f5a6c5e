#include "planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include "weir/config/units.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/report.h"
#include "weir/text.h"

namespace weir::cli {
namespace {

using scenario::Scenario;
using scenario::Tier;

Result<GoalBound> ParseBound(std::string_view text) {
  GoalBound bound{.text = std::string(text)};
  size_t at = text.find(">=");
  bound.at_least = at != std::string_view::npos;
  if (!bound.at_least) at = text.find("<=");
  if (at == std::string_view::npos) {
    return Error{fmt::format(
        "`{}` is no bound; write NAME>=VALUE or NAME<=VALUE", text)};
  }
  const std::string_view name = text::Trim(text.substr(0, at));
  const std::string_view value = text::Trim(text.substr(at + 2));
  if (name == "p50" || name == "p99" || name == "p999") {
    const auto duration = config::ParseDuration(value);
    if (!duration) {
      return Error{
          fmt::format("`{}`: `{}` {}", text, value, duration.error().message)};
    }
    bound.metric = fmt::format("latency_{}_ms", name);
    bound.value = ToSeconds(*duration) * 1e3;
    return bound;
  }
  const auto read =
      std::from_chars(value.data(), value.data() + value.size(), bound.value);
  if (read.ec != std::errc() || read.ptr != value.data() + value.size()) {
    return Error{fmt::format("`{}`: `{}` is no number", text, value)};
  }
  if (name == "goodput") {
    bound.metric = "good_ratio";
  } else if (const auto cls = ParseCriticality(name)) {
    bound.metric = "good_ratio";
    bound.cls = Name(*cls);
  } else if (scenario::IsMetric(name)) {
    bound.metric = name;
  } else {
    return Error{fmt::format(
        "`{}`: there is no `{}`; a goal has goodput, p50, p99, p999, a class "
        "or a figure of [expect]",
        text, name)};
  }
  return bound;
}

// Chosen: fine enough for the shortest burst that a scenario names (50 ms).
constexpr Duration kStep = std::chrono::milliseconds(50);

}  // namespace

Result<std::vector<GoalBound>> ParseGoal(std::string_view text) {
  std::vector<GoalBound> goal;
  while (true) {
    const size_t comma = text.find(',');
    auto bound = ParseBound(text::Trim(text.substr(0, comma)));
    if (!bound) return bound.error();
    goal.push_back(*std::move(bound));
    if (comma == std::string_view::npos) return goal;
    text.remove_prefix(comma + 1);
  }
}

std::optional<double> ValueOf(const GoalBound& bound,
                              const scenario::Report& report) {
  const scenario::Figures* figures = &report.all;
  if (!bound.cls.empty()) {
    const auto found = std::find_if(
        report.classes.begin(), report.classes.end(),
        [&](const scenario::Figures& f) { return f.name == bound.cls; });
    if (found == report.classes.end()) return std::nullopt;
    figures = &*found;
  }
  return scenario::Metric(*figures, bound.metric);
}

bool Holds(const GoalBound& bound, const scenario::Report& report) {
  const auto value = ValueOf(bound, report);
  if (!value) return true;
  return bound.at_least ? *value >= bound.value : *value <= bound.value;
}

int InstancesFor(double peak, double capacity, int spare) {
  // Less than a billionth more than an instance can do is rounding.
  return std::max(1, static_cast<int>(std::ceil(peak / capacity - 1e-9))) +
         spare;
}

int InstancesForSites(double peak, double capacity, int sites) {
  const int needed = InstancesFor(peak, capacity, 0);
  int instances = needed;
  while (instances - (instances + sites - 1) / sites < needed) ++instances;
  return instances;
}

Duration UsualLoss(Duration run) {
  return std::chrono::round<std::chrono::milliseconds>(run / 3);
}

Result<Scenario> WithInstances(const Scenario& scenario, int instances,
                               const Variant& variant) {
  Scenario out = scenario;
  Tier& tier = out.tiers[0];
  const auto names_some = [](const auto& list) {
    return std::any_of(list.begin(), list.end(),
                       [](const auto& item) { return !item.replicas.empty(); });
  };
  if (names_some(tier.changes) || names_some(tier.pauses)) {
    return Error{fmt::format(
        "changes or pauses of `{}` name single replicas, which other numbers "
        "of them may not have; remove `replicas` there, and use --lose",
        tier.name)};
  }
  if (std::any_of(out.phases.begin(), out.phases.end(),
                  [](const auto& phase) { return phase.of_current; })) {
    return Error{
        "a phase is `relative_to = \"now\"`, so its load grows with the "
        "instances; give it a `rate`"};
  }
  const int lost = variant.Lost(instances);
  if (lost >= instances) {
    return Error{
        fmt::format("{} of {} instances lost leaves none", lost, instances)};
  }
  const double before = scenario::CapacityAt(out, {});
  tier.replicas = instances;
  const double factor = before / scenario::CapacityAt(out, {});
  for (scenario::Phase& phase : out.phases) {
    phase.load *= factor;
    phase.to *= factor;
  }
  for (scenario::Hog& hog : out.clients.hogs) hog.load *= factor;
  if (lost > 0) {
    scenario::Change change{.at = variant.lose_at, .up = false};
    for (int i = instances - lost; i < instances; ++i) {
      change.replicas.push_back(static_cast<uint16_t>(i));
    }
    const auto after = std::find_if(
        tier.changes.begin(), tier.changes.end(),
        [&](const scenario::Change& other) { return other.at > change.at; });
    tier.changes.insert(after, change);
  }
  if (variant.retries) out.retries.count = *variant.retries;
  if (variant.layers) out.retries.layers = *variant.layers;
  // Bounds of the file are for its own number of instances.
  out.bounds.clear();
  return out;
}

double PeakOf(const Scenario& scenario) {
  double peak = 0;
  Duration start{};
  for (const scenario::Phase& phase : scenario.phases) {
    // The height of random bursts, which OfferedAt() has the mean of.
    if (phase.shape == scenario::Phase::Shape::kBursts) {
      peak = std::max(peak, std::max(phase.load, phase.to) *
                                scenario::CapacityAt(scenario, {}));
    }
    // A phase is looked at from its start to its last nanosecond.
    for (Duration into{}; into < phase.duration; into += kStep) {
      peak = std::max(peak, scenario::OfferedAt(scenario, start + into));
    }
    start += phase.duration;
    peak = std::max(peak, scenario::OfferedAt(scenario, start - Duration(1)));
  }
  return peak;
}

double CapacityOfOne(const Scenario& scenario) {
  Scenario one = scenario;
  one.tiers[0].replicas = 1;
  return scenario::CapacityAt(one, {});
}

bool Trial::Meets(const std::vector<GoalBound>& goal) const {
  return std::all_of(runs.begin(), runs.end(), [&](const auto& run) {
    return std::all_of(goal.begin(), goal.end(), [&](const auto& bound) {
      return Holds(bound, run.report);
    });
  });
}

std::optional<double> Trial::Worst(const GoalBound& bound) const {
  std::optional<double> worst;
  for (const sim::Outcomes& run : runs) {
    const auto value = ValueOf(bound, run.report);
    if (!value) continue;
    if (!worst) worst = value;
    worst =
        bound.at_least ? std::min(*worst, *value) : std::max(*worst, *value);
  }
  return worst;
}

Search FindFewest(int low, int high, const std::vector<GoalBound>& goal,
                  const std::function<Trial(int)>& run) {
  std::map<int, Trial> tried;
  const auto meets = [&](int instances) {
    const auto found = tried.find(instances);
    if (found != tried.end()) return found->second.Meets(goal);
    return tried.emplace(instances, run(instances)).first->second.Meets(goal);
  };
  Search search;
  if (meets(high)) {
    int fewest = high;
    int below = low;
    while (below < fewest) {
      const int middle = std::midpoint(below, fewest);
      if (meets(middle)) {
        fewest = middle;
      } else {
        below = middle + 1;
      }
    }
    search.answer = fewest;
    // The one below shows what is missing, the one above that it holds.
    if (fewest > low) meets(fewest - 1);
    if (fewest < high) meets(fewest + 1);
    for (const auto& [instances, trial] : tried) {
      if (instances > fewest && !trial.Meets(goal)) search.monotone = false;
    }
  }
  for (auto& [instances, trial] : tried) {
    search.trials.push_back(std::move(trial));
  }
  return search;
}

}  // namespace weir::cli
