// The service of a scenario: tiers, stages, changes, pauses and calls.

#include <algorithm>
#include <string>

#include "read_parts.h"
#include "weir/config/units.h"

namespace weir::scenario {
namespace {

using config::Field;
using config::Section;
using config::Value;
using std::chrono::milliseconds;

template <typename List>
std::string Names(const List& list) {
  std::string out;
  for (const auto& item : list) {
    if (!out.empty()) out += ", ";
    out += '"' + item.name + '"';
  }
  return out;
}

// The index of the one of that name, or a complaint that lists them all.
template <typename List>
std::optional<size_t> Find(const Value& value, const std::string& name,
                           const List& list, std::string_view what) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return i;
  }
  value.Complain("there is no " + std::string(what) + " \"" + name + "\"",
                 "`" + value.path() + "` names one of this file",
                 list.empty() ? "declare it" : "write one of " + Names(list));
  return std::nullopt;
}

std::vector<uint16_t> ReadReplicas(const Section& section, int32_t replicas) {
  std::vector<uint16_t> out;
  for (const Value& value : section["replicas"].ReadArray(
           "which replicas, counted from 0; all when absent")) {
    const auto field = value.ReadInteger(
        {.about = "one of the replicas", .floor = 0, .ceiling = replicas - 1});
    if (field.given) out.push_back(static_cast<uint16_t>(field.value));
  }
  return out;
}

Stage ReadStage(const Section& section, const std::vector<Route>& routes,
                size_t index) {
  Stage stage;
  using enum Stage::Kind;
  stage.name = section["name"]
                   .ReadText({.about = "what changes call it",
                              .fallback = "stage-" + std::to_string(index)})
                   .value;
  stage.kind = section["kind"]
                   .ReadChoice<Stage::Kind>({.about = "what the step needs",
                                             .words = {{"cpu", kCpu},
                                                       {"io", kIo},
                                                       {"lock", kLock},
                                                       {"pool", kPool}},
                                             .fallback = kCpu})
                   .value;
  stage.time = ReadSpan(section, "how long the step takes", true);
  stage.size = static_cast<int32_t>(
      section["size"]
          .ReadInteger({.about = "how many may be in a pool at a time",
                        .floor = 1,
                        .ceiling = 1'000'000,
                        .fallback = 1})
          .value);
  section.OnlyWhen("size", stage.kind == kPool, "`kind` is \"pool\"");
  stage.ratio = section["ratio"]
                    .ReadNumber({.about = "the share of requests that take it",
                                 .floor = 0,
                                 .ceiling = 1,
                                 .above_floor = true,
                                 .fallback = 1})
                    .value;
  const Value route = section["route"];
  const auto name = route.ReadText(
      {.about = "the only route that takes it", .absent = "all routes do"});
  if (name.given) {
    const auto found = Find(route, name.value, routes, "route");
    if (found) stage.route = static_cast<uint16_t>(*found);
  }
  return stage;
}

Change ReadChange(const Section& section, const Tier& tier) {
  Change change;
  change.at = section["at"]
                  .ReadDuration({.about = "when it happens, from the start",
                                 .ceiling = kLongest,
                                 .required = true,
                                 .example = "\"20s\""})
                  .value;
  change.over =
      section["over"]
          .ReadDuration(
              TimeRule("how long speed and time take to get there", Duration{}))
          .value;
  change.replicas = ReadReplicas(section, tier.replicas);
  const auto workers = section["workers"].ReadInteger(
      {.about = "workers of each replica from then on",
       .floor = 0,
       .ceiling = 1'000'000,
       .absent = "as before"});
  if (workers.given) change.workers = static_cast<int32_t>(workers.value);
  const auto speed = section["speed"].ReadNumber(
      {.about = "what the rate of cpu work is multiplied by",
       .floor = 0,
       .ceiling = 100,
       .above_floor = true,
       .absent = "as before"});
  if (speed.given) change.speed = speed.value;
  const auto up = section["up"].ReadBoolean(
      {.about = "whether the replica is there", .absent = "as before"});
  if (up.given) change.up = up.value;

  const Value stage = section["stage"];
  const auto name =
      stage.ReadText({.about = "the stage that `time` and `slow_ratio` are for",
                      .absent = "the first"});
  if (name.given) {
    change.stage = Find(stage, name.value, tier.stages, "stage").value_or(0);
  }
  const bool bimodal = tier.stages[change.stage].time.distribution ==
                       Span::Distribution::kBimodal;
  const auto time = section["time"].ReadDuration(
      TimeRule("the mean time of the stage from then on"));
  if (time.given) change.time = time.value;
  section.OnlyWhen("time", !bimodal, "the stage is not bimodal");
  const auto slow = section["slow_ratio"].ReadNumber(
      {.about = "the share of slow requests from then on",
       .floor = 0,
       .ceiling = 1,
       .absent = "as before"});
  if (slow.given) change.slow_ratio = slow.value;
  section.OnlyWhen("slow_ratio", bimodal, "the stage is bimodal");
  if (!workers.given && !speed.given && !up.given && !time.given &&
      !slow.given) {
    section.Complain("this change changes nothing",
                     "it needs what is different from then on",
                     "add `workers`, `speed`, `up`, `time` or `slow_ratio`");
  }
  return change;
}

Pause ReadPause(const Section& section, int32_t replicas) {
  Pause pause;
  const auto length =
      section["length"].ReadDuration({.about = "how long nothing moves",
                                      .above_floor = true,
                                      .required = true,
                                      .example = "\"300ms\""});
  pause.length = length.value;
  const Value every_value = section["every"];
  const auto every = every_value.ReadDuration(
      {.about = "the mean time from one start to the next",
       .ceiling = kLongest,
       .absent = "it happens once"});
  pause.every = every.value;
  pause.first =
      section["first"]
          .ReadDuration(TimeRule("when the first one starts", pause.every))
          .value;
  pause.regular = section["regular"]
                      .ReadBoolean({.about = "equal distances; else the gaps "
                                             "are exponential",
                                    .fallback = true})
                      .value;
  pause.replicas = ReadReplicas(section, replicas);
  if (every.given && length.given && every.value <= length.value) {
    every_value.Complain(
        "`every` is not above `length`", "the service would never move",
        "raise it above " + config::FormatDuration(length.value));
  }
  return pause;
}

Failure ReadFailure(const Section& section, const std::vector<Route>& routes) {
  Failure failure;
  failure.ratio =
      section["ratio"]
          .ReadNumber({.about = "the share of the requests that fail",
                       .floor = 0,
                       .ceiling = 1,
                       .above_floor = true,
                       .fallback = 1})
          .value;
  failure.from =
      section["from"].ReadDuration(TimeRule("since when", Duration{})).value;
  const Value end = section["until"];
  const auto until = end.ReadDuration(
      {.about = "until when", .ceiling = kLongest, .absent = "the end"});
  if (until.given) failure.until = until.value;
  if (until.given && until.value <= failure.from) {
    end.Complain("`until` is not after `from`", "nothing would ever fail",
                 "raise `until` above " + config::FormatDuration(failure.from));
  }
  const auto after = section["after"].ReadDuration(
      {.about = "how long until it is known, without a worker, instead of the "
                "stages",
       .ceiling = kLongest,
       .absent = "it is known when all stages are done"});
  if (after.given) failure.after = after.value;
  const Value route = section["route"];
  const auto name = route.ReadText(
      {.about = "the only route that fails", .absent = "all routes do"});
  if (name.given) {
    const auto found = Find(route, name.value, routes, "route");
    if (found) failure.route = static_cast<uint16_t>(*found);
  }
  return failure;
}

void ReadStages(const Section& section, const std::vector<Route>& routes,
                Tier& tier) {
  const auto stages =
      section["stages"].ReadTables("the steps of a request, instead of `time`");
  section.NotBoth("stages", "time");
  section.NotBoth("stages", "distribution");
  std::vector<std::pair<std::string, config::Place>> seen;
  for (const Section& stage : stages) {
    tier.stages.push_back(ReadStage(stage, routes, tier.stages.size() + 1));
    CheckUnique(stage["name"], tier.stages.back().name, seen);
  }
  // Also asked for when there are stages, so that all keys are known.
  const Span time = ReadSpan(section, "cpu time of a request", stages.empty());
  if (tier.stages.empty()) tier.stages = {{.name = "cpu", .time = time}};
}

Tier ReadTier(const Section& section, const std::vector<Route>& routes,
              std::string name) {
  Tier tier;
  tier.name = std::move(name);
  tier.workers = static_cast<int32_t>(
      section["workers"]
          .ReadInteger({.about = "requests that a replica works on at a time",
                        .floor = 1,
                        .ceiling = 1'000'000,
                        .required = true,
                        .example = "20"})
          .value);
  tier.workers = std::max(tier.workers, 1);
  ReadStages(section, routes, tier);
  using enum Discipline;
  tier.discipline =
      section["discipline"]
          .ReadChoice<Discipline>(
              {.about = "who gets the workers: first come first served, or "
                        "all share them",
               .words = {{"fcfs", kFcfs}, {"sharing", kSharing}},
               .fallback = kFcfs})
          .value;
  tier.replicas =
      static_cast<int32_t>(section["replicas"]
                               .ReadInteger({.about = "copies of it",
                                             .floor = 1,
                                             .ceiling = 1000,
                                             .fallback = 1})
                               .value);
  tier.balancer = section["balancer"]
                      .ReadChoice<Balancer>(
                          {.about = "how requests find a replica",
                           .words = {{"round-robin", Balancer::kRoundRobin},
                                     {"two-choices", Balancer::kTwoChoices},
                                     {"least-loaded", Balancer::kLeastLoaded}},
                           .fallback = Balancer::kRoundRobin})
                      .value;
  tier.reject_cost =
      section["reject_cost"]
          .ReadDuration(
              TimeRule("cpu time that refusing a request takes", Duration{}))
          .value;
  tier.cancel_at_deadline =
      section["cancel_at_deadline"]
          .ReadBoolean({.about = "whether work is dropped when its deadline "
                                 "passes",
                        .fallback = false})
          .value;
  tier.network = ReadSpan(
      section["network"].ReadTable("delay of each message on its way here"),
      "the delay", false);
  tier.guard =
      section["guard"]
          .ReadBoolean({.about = "whether a guard stands before each replica",
                        .fallback = true})
          .value;
  tier.client_guard =
      section["client_guard"]
          .ReadBoolean({.about = "whether its callers carry a client guard",
                        .fallback = false})
          .value;
  for (const Section& change :
       section["changes"].ReadTables("what changes, and when")) {
    tier.changes.push_back(ReadChange(change, tier));
  }
  std::stable_sort(
      tier.changes.begin(), tier.changes.end(),
      [](const Change& a, const Change& b) { return a.at < b.at; });
  for (const Section& pause :
       section["pauses"].ReadTables("when nothing moves")) {
    tier.pauses.push_back(ReadPause(pause, tier.replicas));
  }
  for (const Section& failure :
       section["failures"].ReadTables("what fails, and when")) {
    tier.failures.push_back(ReadFailure(failure, routes));
  }
  return tier;
}

void ReadCalls(const Section& section, std::vector<Tier>& tiers, size_t own) {
  for (const Section& call :
       section["calls"].ReadTables("what it asks of other tiers")) {
    Call out;
    const Value target = call["tier"];
    const auto name = target.ReadText({.about = "the tier that is called",
                                       .required = true,
                                       .example = "\"database\""});
    out.times = static_cast<int32_t>(call["times"]
                                         .ReadInteger({.about = "how often",
                                                       .floor = 1,
                                                       .ceiling = 1000,
                                                       .fallback = 1})
                                         .value);
    out.parallel = call["parallel"]
                       .ReadBoolean({.about = "all at once instead of one "
                                              "after another",
                                     .fallback = false})
                       .value;
    if (!name.given) continue;
    const auto found = Find(target, name.value, tiers, "tier");
    if (!found) continue;
    if (*found <= own) {
      target.Complain("a tier only calls tiers below its own",
                      "calls that go back up could go round for ever",
                      "move `[[tiers]]` \"" + name.value + "\" below");
      continue;
    }
    out.tier = *found;
    tiers[own].calls.push_back(out);
  }
}

}  // namespace

Span ReadSpan(const Section& section, std::string_view about, bool required) {
  Span span;
  using enum Span::Distribution;
  span.distribution = section["distribution"]
                          .ReadChoice<Span::Distribution>(
                              {.about = "how the times spread",
                               .words = {{"constant", kConstant},
                                         {"exponential", kExponential},
                                         {"lognormal", kLognormal},
                                         {"uniform", kUniform},
                                         {"bimodal", kBimodal}},
                               .fallback = kConstant})
                          .value;
  const bool bimodal = span.distribution == kBimodal;
  const auto time = section["time"].ReadDuration(
      {.about = about,
       .ceiling = kLongest,
       .above_floor = required,
       .fallback = required ? std::nullopt : std::optional(Duration{}),
       .required = required && !bimodal,
       .example = "\"20ms\""});
  section.OnlyWhen("time", !bimodal, "`distribution` is not \"bimodal\"");
  span.mean = time.given ? time.value : Duration{};
  span.sigma =
      section["sigma"]
          .ReadNumber({.about = "the deviation of the logarithm of the time",
                       .floor = 0,
                       .ceiling = 4,
                       .above_floor = true,
                       .fallback = 1})
          .value;
  section.OnlyWhen("sigma", span.distribution == kLognormal,
                   "`distribution` is \"lognormal\"");
  const auto mode = [&](std::string_view key, std::string_view what) {
    const auto field = section[key].ReadDuration({.about = what,
                                                  .ceiling = kLongest,
                                                  .above_floor = true,
                                                  .required = bimodal,
                                                  .example = "\"2ms\""});
    section.OnlyWhen(key, bimodal, "`distribution` is \"bimodal\"");
    return field.value;
  };
  span.fast = mode("fast", "the time of a fast request");
  span.slow = mode("slow", "the time of a slow request");
  span.slow_ratio = section["slow_ratio"]
                        .ReadNumber({.about = "the share of slow requests",
                                     .floor = 0,
                                     .ceiling = 1,
                                     .required = bimodal,
                                     .example = "0.1"})
                        .value;
  if (!bimodal) span.slow_ratio = 0;
  section.OnlyWhen("slow_ratio", bimodal, "`distribution` is \"bimodal\"");
  return span;
}

std::vector<Tier> ReadTiers(const Section& root,
                            const std::vector<Route>& routes) {
  root.NotBoth("service", "tiers");
  const Section service = root["service"].ReadTable("the service");
  const auto sections = root["tiers"].ReadTables(
      "services that call each other, instead of `[service]`; the first one "
      "is asked by the clients");
  if (sections.empty()) return {ReadTier(service, routes, "service")};

  std::vector<Tier> tiers;
  std::vector<std::pair<std::string, config::Place>> seen;
  for (const Section& section : sections) {
    const Value name = section["name"];
    const auto field = name.ReadText({.about = "what calls refer to",
                                      .required = true,
                                      .example = "\"front\""});
    if (field.given) CheckUnique(name, field.value, seen);
    tiers.push_back(ReadTier(section, routes, field.value));
  }
  for (size_t i = 0; i < sections.size(); ++i) {
    ReadCalls(sections[i], tiers, i);
  }
  return tiers;
}

}  // namespace weir::scenario
