// `[expect]`: the bounds that a run must keep.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "read_parts.h"
#include "weir/scenario/report.h"

namespace weir::scenario {
namespace {

using config::Section;
using config::Value;

void ReadBound(const Value& value, Bound bound, std::vector<Bound>& bounds) {
  const Section section = value.ReadTable("bounds of a figure");
  const double lowest = std::numeric_limits<double>::lowest();
  const auto min = section["min"].ReadNumber(
      {.about = "the least it may be", .floor = lowest, .absent = "no bound"});
  const auto max = section["max"].ReadNumber(
      {.about = "the most it may be", .floor = lowest, .absent = "no bound"});
  const auto goal = section["goal"].ReadNumber(
      {.about = "what it is meant to reach; missing it breaks nothing",
       .floor = lowest,
       .absent = "the bound itself"});
  if (min.given) bound.min = min.value;
  if (max.given) bound.max = max.value;
  if (goal.given) bound.goal = goal.value;
  if (!section["min"].present() && !section["max"].present()) {
    value.Complain("this bound demands nothing", "it needs a `min` or a `max`",
                   "write { min = 0.97 }");
  }
  if (min.given && max.given && min.value > max.value) {
    section["min"].Complain("`min` is above `max`", "no figure can be both",
                            "swap them");
  }
  if (goal.given &&
      (min.given == max.given || (min.given && goal.value < min.value) ||
       (max.given && goal.value > max.value))) {
    section["goal"].Complain("`goal` is no better than the bound beside it",
                             "it says how much better than that a figure is "
                             "meant to be",
                             "give it beside a `min` that it is above, or "
                             "beside a `max` that it is below");
  }
  bounds.push_back(std::move(bound));
}

void ReadMetrics(const Section& section, const Bound& like,
                 std::vector<Bound>& bounds) {
  for (const auto& [name, value] : section.Members()) {
    if (like.scope == Bound::Scope::kAll &&
        (name == "phase" || name == "class")) {
      continue;
    }
    Bound bound = like;
    bound.metric = name;
    if (!IsMetric(name) &&
        !(like.scope == Bound::Scope::kAll && IsMetricOfRun(name))) {
      value.Complain("there is no figure `" + name + "`",
                     "bounds are on the figures of a report",
                     "write one of those that docs/scenarios.md lists, such as "
                     "goodput_ratio or latency_p99_ms");
      continue;
    }
    ReadBound(value, std::move(bound), bounds);
  }
}

template <typename Exists>
void ReadNamed(const Section& section, Bound::Scope scope, Exists exists,
               std::string_view what, std::vector<Bound>& bounds) {
  for (const auto& [name, value] : section.Members()) {
    if (!exists(name)) {
      value.Complain("there is no " + std::string(what) + " \"" + name + "\"",
                     "bounds are on the parts of this scenario",
                     "use the name of one of them");
      continue;
    }
    ReadMetrics(value.ReadTable("bounds of one part"),
                Bound{.scope = scope, .of = name}, bounds);
  }
}

}  // namespace

std::vector<Bound> ReadBounds(const Section& root, const Scenario& scenario) {
  const Section expect =
      root["expect"].ReadTable("bounds that a run must keep");
  std::vector<Bound> bounds;
  ReadMetrics(expect, {}, bounds);
  ReadNamed(
      expect["phase"].ReadTable("bounds of one phase"), Bound::Scope::kPhase,
      [&](const std::string& name) {
        return std::any_of(scenario.phases.begin(), scenario.phases.end(),
                           [&](const Phase& p) { return p.name == name; });
      },
      "phase", bounds);
  ReadNamed(
      expect["class"].ReadTable("bounds of one class"), Bound::Scope::kClass,
      [&](const std::string& name) {
        return std::any_of(
            scenario.classes.begin(), scenario.classes.end(),
            [&](const Class& c) { return Name(c.criticality) == name; });
      },
      "class", bounds);
  return bounds;
}

}  // namespace weir::scenario
