#include "policy_stages.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "weir/config/units.h"

namespace weir::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using Kind = Quota::Kind;

constexpr double kLargestThreshold = 1e9;

constexpr std::array<std::pair<std::string_view, Quota::Unit>, 4> kUnits = {{
    {"hour", Quota::Unit::kHour},
    {"day", Quota::Unit::kDay},
    {"week", Quota::Unit::kWeek},
    {"month", Quota::Unit::kMonth},
}};
constexpr std::string_view kWindowShape =
    "a duration from \"10ms\" to \"24h\", or \"hour\", \"day\", \"week\" or "
    "\"month\"";

std::optional<Quota::Unit> ParseUnit(std::string_view text) {
  for (const auto& [name, unit] : kUnits) {
    if (text == name) return unit;
  }
  return std::nullopt;
}

bool IsWindow(std::string_view text) {
  if (ParseUnit(text)) return true;
  const Result<Duration> window = ParseDuration(text);
  return window &&
         !Quota::Check({.calls = 1, .kind = Kind::kFixed, .window = *window});
}

bool IsZone(std::string_view text) {
  Policy policy;
  policy.service = "x";
  policy.resources.push_back({.name = "x"});
  policy.resources[0].quota = QuotaPolicy{.zone = std::string(text)};
  return !policy.Check();
}

void ReadQuota(const Value& value, Resource& resource) {
  const Section section =
      value.ReadTable("how many requests of it may start in a window");
  const Value calls_value = section["calls"];
  const auto calls = calls_value.ReadInteger(
      {.about = "the number of requests that may start in a window",
       .floor = 0,
       .ceiling = Quota::kMostCalls,
       .absent = "no quota"});
  const auto window = section["window"].ReadText(
      {.about = "the window: of that length, or of the calendar",
       .shape = kWindowShape,
       .accepts = IsWindow,
       .fallback = "1m"});
  const auto kind = section["kind"].ReadChoice<Kind>(
      {.about = "whether windows follow one another or slide",
       .words = {{"sliding", Kind::kSliding}, {"fixed", Kind::kFixed}},
       .fallback = Kind::kSliding});
  const auto zone = section["zone"].ReadText(
      {.about = "the time zone of a window of the calendar",
       .shape = "a name of the time zone database, such as \"Europe/Berlin\"",
       .accepts = IsZone,
       .fallback = "UTC"});
  if (!section.present()) return;
  if (!calls_value.present()) {
    section.Complain("`" + section.path() + "` has no `calls`",
                     "a quota is a number of requests in a window",
                     "add `calls = 10`, or remove `[" + section.path() + "]`");
    return;
  }
  QuotaPolicy quota;
  quota.rule.calls = calls.value;
  quota.zone = zone.value;
  const auto unit = ParseUnit(window.value);
  section.OnlyWhen("kind", !unit.has_value(), "`window` is a duration");
  section.OnlyWhen("zone", unit.has_value(),
                   "`window` is \"hour\", \"day\", \"week\" or \"month\"");
  if (unit) {
    quota.rule.kind = Kind::kCalendar;
    quota.rule.unit = *unit;
  } else {
    quota.rule.kind = kind.value;
    quota.rule.window = ParseDuration(window.value).value();
    quota.zone = "UTC";
  }
  if (quota.rule.kind == Kind::kSliding &&
      quota.rule.calls > Quota::kMostSlidingCalls) {
    calls_value.Complain(
        "`" + calls_value.path() + "` is above 1000000, and the window slides",
        "a sliding window keeps two counts in one word, of 20 bits each",
        "take a shorter window and fewer calls, or `kind = \"fixed\"`");
  }
  resource.quota = quota;
}

std::vector<TierTable::Tier> ReadTierList(const Value& value) {
  std::vector<TierTable::Tier> tiers;
  const auto items = value.ReadArray(
      "above which % of `max` which % of the requests is dropped",
      "a list of 1 to 8 tiers [limit, drop]");
  for (const Value& item : items) {
    const auto pair =
        item.ReadArray("a tier", "[limit, drop], two percentages");
    if (!item.is_array()) continue;
    if (pair.size() != 2) {
      item.Complain(
          "a tier has " + std::to_string(pair.size()) + " numbers instead of 2",
          "a tier is [limit, drop]: above limit % of `max` it drops "
          "drop % of the requests",
          "write, for example, [70, 20]");
      continue;
    }
    const auto limit =
        pair[0].ReadInteger({.about = "the limit of a tier, in % of `max`",
                             .floor = 0,
                             .ceiling = 1000});
    const auto drop = pair[1].ReadInteger(
        {.about = "the % of the requests above the limit that is dropped",
         .floor = 0,
         .ceiling = 100});
    if (!limit.given || !drop.given) continue;
    if (!tiers.empty() && limit.value <= tiers.back().limit_percent) {
      item.Complain("the limit of this tier, " + std::to_string(limit.value) +
                        ", is not above that of the one before, " +
                        std::to_string(tiers.back().limit_percent),
                    "tiers lie above one another; of two at one limit the "
                    "first would be empty",
                    "write the tiers in rising order, each limit once");
      continue;
    }
    tiers.push_back(
        {static_cast<int32_t>(limit.value), static_cast<int32_t>(drop.value)});
  }
  if (items.size() > TierTable::kMostTiers) {
    value.Complain("there are " + std::to_string(items.size()) + " tiers",
                   "8 are the most", "join tiers that lie near each other");
    tiers.resize(TierTable::kMostTiers);
  }
  return tiers;
}

void ReadTiers(const Section& root, Policy& policy) {
  const Section section = root["tiers"].ReadTable(
      "which share of the surplus is dropped at which rate");
  const Value max_value = section["max"];
  const auto max = max_value.ReadInteger(
      {.about = "the number of requests in a window that the limits of the "
                "tiers are percentages of",
       .floor = 1,
       .ceiling = TierTable::kMostMax,
       .absent = "no tiers"});
  const Value list = section["tiers"];
  TierTable::Config config;
  config.max = max.value;
  config.tiers = ReadTierList(list);
  config.window = section["window"]
                      .ReadDuration({.about = "the window that is counted in",
                                     .floor = milliseconds(100),
                                     .ceiling = std::chrono::seconds(10),
                                     .fallback = config.window})
                      .value;
  config.smooth =
      section["mode"]
          .ReadChoice<bool>(
              {.about = "whether the last requests of a window are dropped, or "
                        "as many at equal distances",
               .words = {{"window", false}, {"smooth", true}},
               .fallback = false})
          .value;
  config.random =
      section["drop"]
          .ReadChoice<bool>({.about = "whether shares are exact or by chance",
                             .words = {{"even", false}, {"random", true}},
                             .fallback = false})
          .value;
  if (!section.present()) return;
  if (!max_value.present() || !list.present() ||
      (list.is_array() && list.ReadArray("").empty())) {
    section.Complain("`tiers` needs `max` and at least one tier",
                     "a tier drops a share of what exceeds its part of `max`",
                     "add `max = 40000` and `tiers = [[70, 20], [80, 50], "
                     "[100, 100]]`");
    return;
  }
  if (max.given && !config.tiers.empty()) policy.tiers = config;
}

void ReadSystem(const Section& root, Policy& policy) {
  const Section section =
      root["system"].ReadTable("thresholds of the whole service");
  SystemRule::Config& config = policy.system;
  const auto read = [&](std::string_view key, std::string_view about,
                        double most, double& threshold) {
    const auto number = section[key].ReadNumber({.about = about,
                                                 .floor = 0,
                                                 .ceiling = most,
                                                 .absent = "not looked at"});
    if (number.given) threshold = number.value;
  };
  read("qps", "the most requests per second that pass", kLargestThreshold,
       config.qps);
  read("threads", "the most requests that run at once", kLargestThreshold,
       config.threads);
  read(
      "executor_load",
      "the requests that run, averaged over about a second, above which all is "
      "refused: as many as the executor has threads, or the task processors",
      kLargestThreshold, config.executor_load);
  const auto latency = section["latency"].ReadDuration(
      {.about = "the mean latency above which all is refused",
       .floor = Duration::zero(),
       .ceiling = hours(1),
       .absent = "not looked at"});
  if (latency.given) {
    config.latency_ms = static_cast<double>(latency.value.count()) * 1e-6;
  }
  read("load",
       "the runnable threads of the machine above which no more run than the "
       "capacity check allows",
       kLargestThreshold, config.load);
  read("cpu", "the share of the CPU above which requests are refused", 1,
       config.cpu_ratio);
  config.robust =
      section["robust"]
          .ReadBoolean({.about = "whether the rule is without the dangers of "
                                 "the original",
                        .fallback = false})
          .value;
  // A wrong one is one complaint, and none about its absence.
  bool names_one = false;
  for (const auto* key :
       {"qps", "threads", "executor_load", "latency", "load", "cpu"}) {
    names_one = names_one || section[key].present();
  }
  if (section.present() && !names_one) {
    section.Complain(
        "`system` has no threshold", "without one it refuses nothing",
        "add `qps`, `threads`, `executor_load`, `latency`, `load` or `cpu`, or "
        "remove `[system]`");
  }
}

std::string Quoted(std::string_view text) {
  return '"' + std::string(text) + '"';
}

std::string Written(const Quota::Config& rule) {
  if (rule.kind != Kind::kCalendar) return FormatDuration(rule.window);
  return std::string(kUnits[static_cast<size_t>(rule.unit)].first);
}

}  // namespace

void ReadResourceStages(const Section& section, Resource& resource) {
  const auto stale = section["stale"].ReadDuration(
      {.about = "how far behind a link may be whose requests still run",
       .floor = milliseconds(1),
       .ceiling = hours(1),
       .absent = "any link's run"});
  if (stale.given) resource.stale = stale.value;
  ReadQuota(section["quota"], resource);
}

void ReadServiceStages(const Section& root, Policy& policy) {
  ReadTiers(root, policy);
  ReadSystem(root, policy);
}

std::string PrintResourceStages(const Resource& resource) {
  std::string out;
  if (resource.stale) {
    out += "stale = " + Quoted(FormatDuration(*resource.stale)) + '\n';
  }
  if (resource.quota) {
    const Quota::Config& rule = resource.quota->rule;
    out += "quota = { calls = " + std::to_string(rule.calls) +
           ", window = " + Quoted(Written(rule));
    out += rule.kind == Kind::kCalendar
               ? ", zone = " + Quoted(resource.quota->zone)
               : ", kind = " +
                     Quoted(rule.kind == Kind::kFixed ? "fixed" : "sliding");
    out += " }\n";
  }
  return out;
}

std::string PrintServiceStages(const Policy& policy) {
  std::string out;
  if (policy.tiers) {
    const TierTable::Config& tiers = *policy.tiers;
    out += "\n[tiers]\nmax = " + std::to_string(tiers.max) + "\ntiers = [";
    for (size_t i = 0; i < tiers.tiers.size(); ++i) {
      const TierTable::Tier& tier = tiers.tiers[i];
      out += (i > 0 ? ", [" : "[") + std::to_string(tier.limit_percent) + ", " +
             std::to_string(tier.drop_percent) + ']';
    }
    out += "]\nwindow = " + Quoted(FormatDuration(tiers.window));
    out += "\nmode = " + Quoted(tiers.smooth ? "smooth" : "window");
    out += "\ndrop = " + Quoted(tiers.random ? "random" : "even") + '\n';
  }
  const SystemRule::Config& system = policy.system;
  if (!system.any()) return out;
  out += "\n[system]\n";
  const auto line = [&](std::string_view key, double threshold) {
    if (threshold == SystemRule::Config::kOff) return;
    out += std::string(key) + " = " + FormatNumber(threshold) + '\n';
  };
  line("qps", system.qps);
  line("threads", system.threads);
  line("executor_load", system.executor_load);
  if (system.latency_ms < SystemRule::Config::kOff) {
    const Duration latency(std::llround(system.latency_ms * 1e6));
    out += "latency = " + Quoted(FormatDuration(latency)) + '\n';
  }
  line("load", system.load);
  line("cpu", system.cpu_ratio);
  if (system.robust) out += "robust = true\n";
  return out;
}

}  // namespace weir::config
