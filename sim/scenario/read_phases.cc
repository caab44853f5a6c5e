// The phases of a scenario.

#include <algorithm>
#include <numeric>
#include <string>

#include "read_parts.h"
#include "weir/config/units.h"

namespace weir::scenario {
namespace {

using config::Section;
using config::Value;

// Chosen: no shed is cheap enough to try more.
constexpr double kHighestLoad = 10'000;

// What `shape` may be; steps are made into phases of their own.
enum class ShapeWord { kConstant, kRamp, kSquare, kBursts, kSteps };

// Loads of the classes, as `loads = { vital = 0.3, sheddable = 3.6 }`.
void ReadLoads(const Section& section, const std::vector<Class>& classes,
               Phase& phase) {
  const Value value = section["loads"];
  const Section loads = value.ReadTable(
      "the load of each class, instead of `load`, as multiples of capacity");
  std::vector<double> shares;
  for (const Class& cls : classes) {
    shares.push_back(loads[Name(cls.criticality)]
                         .ReadNumber({.about = "the load of this class",
                                      .floor = 0,
                                      .ceiling = kHighestLoad,
                                      .fallback = 0})
                         .value);
  }
  if (!value.present()) return;
  phase.load = std::accumulate(shares.begin(), shares.end(), 0.);
  if (phase.load == 0) return;
  for (double& share : shares) share /= phase.load;
  phase.shares = shares;
}

// `mix = { "/slow" = 0.8, "/fast" = 0.2 }`.
void ReadMix(const Section& section, const std::vector<Route>& routes,
             Phase& phase) {
  const Value value = section["mix"];
  const Section mix = value.ReadTable(
      "the shares of the routes in this phase; their own when absent");
  std::vector<double> shares(routes.size(), 0);
  for (const auto& [name, share] : mix.Members()) {
    const auto route =
        std::find_if(routes.begin(), routes.end(),
                     [&name = name](const Route& r) { return r.name == name; });
    if (route == routes.end()) {
      share.Complain("there is no route \"" + name + "\"",
                     "`mix` has the shares of routes of this file",
                     "declare it in `routes`, or use the name of one of them");
      continue;
    }
    shares[static_cast<size_t>(route - routes.begin())] =
        share.ReadNumber(RatioRule("the share of this route in this phase", 0))
            .value;
  }
  if (!value.present()) return;
  CheckShares(value, "mix", shares);
  phase.mix = shares;
}

// The heights of `shape = "steps"`.
std::vector<double> ReadSteps(const Section& section, bool steps) {
  std::vector<double> out;
  const Value value = section["steps"];
  for (const Value& step :
       value.ReadArray("the loads of a staircase, each for `duration`")) {
    out.push_back(
        step.ReadNumber(
                {.about = "a load", .floor = 0, .ceiling = kHighestLoad})
            .value);
  }
  section.OnlyWhen("steps", steps, "`shape` is \"steps\"");
  if (steps && out.empty()) {
    section.Complain("a staircase without steps",
                     "`shape` is \"steps\", which needs the load of each",
                     "add `steps = [1, 2, 5, 10]`");
  }
  return out;
}

void ReadPeaks(const Section& section, bool peaks, Phase& phase) {
  const auto read = [&](std::string_view key, std::string_view about) {
    section.OnlyWhen(key, peaks, "`shape` is \"square\" or \"bursts\"");
    return section[key].ReadDuration({.about = about,
                                      .ceiling = kLongest,
                                      .above_floor = true,
                                      .required = peaks,
                                      .example = "\"15s\""});
  };
  const auto every = read("every", "the time from one peak to the next");
  const auto peak = read("peak_for", "how long a peak lasts");
  phase.every = every.value;
  phase.peak_for = peak.value;
  if (every.given && peak.given && peak.value > every.value) {
    section["peak_for"].Complain(
        "`peak_for` is above `every`", "a peak ends before the next one begins",
        "write at most " + config::FormatDuration(every.value));
  }
}

void ReadPhase(const Section& section, const std::vector<Class>& classes,
               const std::vector<Route>& routes, double capacity,
               std::vector<Phase>& phases,
               std::vector<std::pair<std::string, config::Place>>& seen) {
  Phase phase;
  const Value name = section["name"];
  const auto named = name.ReadText({.about = "what reports call it",
                                    .required = true,
                                    .example = "\"calm\""});
  phase.name = named.value;
  if (named.given) CheckUnique(name, named.value, seen);
  phase.duration = section["duration"]
                       .ReadDuration({.about = "how long it lasts",
                                      .ceiling = kLongest,
                                      .above_floor = true,
                                      .required = true,
                                      .example = "\"10s\""})
                       .value;
  const auto shape = section["shape"].ReadChoice<ShapeWord>(
      {.about = "how the load moves",
       .words = {{"constant", ShapeWord::kConstant},
                 {"ramp", ShapeWord::kRamp},
                 {"square", ShapeWord::kSquare},
                 {"bursts", ShapeWord::kBursts},
                 {"steps", ShapeWord::kSteps}},
       .fallback = ShapeWord::kConstant});
  const bool steps = shape.value == ShapeWord::kSteps;
  const bool peaks =
      shape.value == ShapeWord::kSquare || shape.value == ShapeWord::kBursts;
  const bool ramp = shape.value == ShapeWord::kRamp;
  if (peaks) {
    phase.shape = shape.value == ShapeWord::kSquare ? Phase::Shape::kSquare
                                                    : Phase::Shape::kBursts;
  }
  if (ramp) phase.shape = Phase::Shape::kRamp;

  const Load load =
      ReadLoad(section, "load", "rate", "what is offered", capacity);
  const Load to =
      ReadLoad(section, "to", "to_rate",
               "where a ramp ends, or how high a peak is", capacity);
  phase.load = load.value;
  phase.to = to.value;
  for (const std::string_view key : {"to", "to_rate"}) {
    section.OnlyWhen(key, ramp || peaks,
                     "`shape` is \"ramp\", \"square\" or \"bursts\"");
  }
  ReadLoads(section, classes, phase);
  ReadMix(section, routes, phase);
  section.NotBoth("loads", "load");
  section.NotBoth("loads", "rate");
  section.OnlyWhen("loads", shape.value == ShapeWord::kConstant,
                   "`shape` is \"constant\"");
  const auto heights = ReadSteps(section, steps);
  for (const std::string_view key : {"load", "rate"}) {
    section.OnlyWhen(key, !steps, "`shape` is not \"steps\"");
  }
  ReadPeaks(section, peaks, phase);
  const bool has_load = section["load"].present() || section["rate"].present();
  if (!steps && !has_load && !section["loads"].present()) {
    section.Complain("a phase without a load", "it says what is offered",
                     "add `load = 0.8`, or `rate = \"800/s\"`");
  }
  if ((ramp || peaks) && !section["to"].present() &&
      !section["to_rate"].present()) {
    section.Complain("this shape needs `to`",
                     ramp ? "a ramp goes from `load` to `to`"
                          : "a peak is as high as `to` says",
                     "add `to = 2`");
  }
  phase.of_current =
      section["relative_to"]
          .ReadChoice<bool>({.about = "the capacity that loads are multiples "
                                      "of: that of the start, or of each "
                                      "instant",
                             .words = {{"start", false}, {"now", true}},
                             .fallback = false})
          .value;
  section.NotBoth("relative_to", "rate");
  phase.measured = section["measured"]
                       .ReadBoolean({.about = "whether it counts in the totals",
                                     .fallback = true})
                       .value;

  if (!steps) phases.push_back(phase);
  for (const double height : heights) {
    Phase step = phase;
    step.name += "-" + std::to_string(phases.size() + 1) + "@" +
                 config::FormatNumber(height);
    step.load = height;
    phases.push_back(step);
  }
}

}  // namespace

Load ReadLoad(const Section& section, std::string_view key,
              std::string_view rate_key, std::string_view about,
              double capacity) {
  const auto load = section[key].ReadNumber(
      {.about = std::string(about) + ", as a multiple of capacity",
       .floor = 0,
       .ceiling = kHighestLoad,
       .absent = "0"});
  const auto rate = section[rate_key].ReadRate(
      {.about = std::string(about) + ", in requests per second",
       .ceiling = 1e7,
       .absent = "0"});
  section.NotBoth(key, rate_key);
  if (load.given) return {load.value, true, false};
  if (rate.given && capacity > 0) return {rate.value / capacity, true, true};
  return {0, false, false};
}

std::vector<Phase> ReadPhases(const Section& root,
                              const std::vector<Class>& classes,
                              const std::vector<Route>& routes,
                              double capacity) {
  const Value value = root["phases"];
  std::vector<Phase> phases;
  std::vector<std::pair<std::string, config::Place>> seen;
  for (const Section& section :
       value.ReadTables("what is offered, one after another")) {
    ReadPhase(section, classes, routes, capacity, phases, seen);
  }
  if (!value.present()) {
    root.Complain("there are no phases", "they say what is offered",
                  "add `phases = [{ name = \"calm\", load = 0.8, duration = "
                  "\"10s\" }]`");
  }
  return phases;
}

}  // namespace weir::scenario
