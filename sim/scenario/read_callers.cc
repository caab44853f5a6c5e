// What callers do with a request that failed, plain ones and guarded ones.

#include <algorithm>
#include <string_view>

#include "read_parts.h"
#include "weir/config/client_policy.h"

namespace weir::scenario {
namespace {

using config::Section;
using config::Value;

void ReadRetryCauses(const Section& section, Retries& retries) {
  const Value value = section["on"];
  const auto causes = value.ReadArray(
      "what is tried again: timeout, shed, error; all three "
      "when absent");
  if (!value.present()) return;
  retries.on_timeout = retries.on_shed = retries.on_error = false;
  enum class Cause { kTimeout, kShed, kError };
  for (const Value& cause : causes) {
    const auto field =
        cause.ReadChoice<Cause>({.about = "something to try again after",
                                 .words = {{"timeout", Cause::kTimeout},
                                           {"shed", Cause::kShed},
                                           {"error", Cause::kError}}});
    if (!field.given) continue;
    if (field.value == Cause::kTimeout) retries.on_timeout = true;
    if (field.value == Cause::kShed) retries.on_shed = true;
    if (field.value == Cause::kError) retries.on_error = true;
  }
}

}  // namespace

Retries ReadRetries(const Section& root) {
  const Section section =
      root["retries"].ReadTable("what clients do with a request that failed");
  Retries retries;
  const auto integer = [&](std::string_view key, std::string_view about,
                           int64_t floor, int64_t ceiling, int64_t fallback) {
    return static_cast<int32_t>(section[key]
                                    .ReadInteger({.about = about,
                                                  .floor = floor,
                                                  .ceiling = ceiling,
                                                  .fallback = fallback})
                                    .value);
  };
  retries.count = integer("count", "retries after the first attempt", 0, 20, 0);
  ReadRetryCauses(section, retries);
  retries.backoff = section["backoff"]
                        .ReadDuration(TimeRule(
                            "the wait before the first retry", retries.backoff))
                        .value;
  retries.factor = section["factor"]
                       .ReadNumber({.about = "what each further wait is "
                                             "multiplied by",
                                    .floor = 1,
                                    .ceiling = 10,
                                    .fallback = retries.factor})
                       .value;
  retries.ceiling =
      section["ceiling"]
          .ReadDuration(TimeRule("the longest wait", retries.ceiling))
          .value;
  retries.jitter =
      section["jitter"]
          .ReadNumber(
              RatioRule("the share of the wait that is random", retries.jitter))
          .value;
  retries.layers =
      integer("layers", "callers in a row that each retry", 1, 5, 1);
  retries.budget_ratio =
      section["budget_ratio"]
          .ReadNumber({.about = "retries per request that clients allow "
                                "themselves",
                       .floor = 0,
                       .ceiling = 10,
                       .absent = "no budget"})
          .value;
  if (!section["budget_ratio"].present()) retries.budget_ratio = 0;
  return retries;
}

namespace {

// What the guarded callers of a scenario do unless `[client_guard]` says
// otherwise: what its other callers do, within what a guard allows.
config::ClientSettings UsualSettings(const Scenario& scenario) {
  config::ClientSettings settings;
  ClientPolicy& policy = settings.policy;
  const Retries& retries = scenario.retries;
  policy.retries.max_retries =
      std::min(retries.count, policy.retries.max_retries);
  policy.retries.backoff.first = std::max(retries.backoff, Duration(1));
  policy.retries.backoff.factor = retries.factor;
  policy.retries.backoff.ceiling = std::clamp<Duration>(
      retries.ceiling, policy.retries.backoff.first, std::chrono::hours(1));
  policy.retries.on_timed_out = retries.on_timeout;
  policy.retries.on_refused = retries.on_shed;
  policy.retries.on_unavailable = policy.retries.on_error = retries.on_error;
  policy.deadline.ceiling = std::chrono::hours(1);
  policy.hedge_after = scenario.hedging.after;
  return settings;
}

}  // namespace

CallerRules ReadCallers(const Section& root, const Scenario& scenario) {
  const Section section =
      root["client_guard"].ReadTable("what callers with a client guard do");
  CallerRules callers;
  callers.processes = static_cast<int32_t>(
      section["processes"]
          .ReadInteger({.about = "processes that the clients are spread over",
                        .floor = 1,
                        .ceiling = 10'000,
                        .fallback = callers.processes})
          .value);
  callers.share = section["share"]
                      .ReadNumber({.about = "the share of the clients that "
                                            "carry one; the others are plain",
                                   .floor = 0,
                                   .ceiling = 1,
                                   .above_floor = true,
                                   .fallback = 1})
                      .value;
  config::ClientSettings settings =
      config::ReadClientSettings(section, UsualSettings(scenario));
  callers.policy = settings.policy;
  callers.allowance = settings.allowance;
  return callers;
}

}  // namespace weir::scenario
