#include "weir/config/client_policy.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weir/config/units.h"

namespace weir::config {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

void Read(const Value& value, const Rule<Duration>& rule, Duration& out) {
  out = value.ReadDuration(rule).value;
}

void Read(const Value& value, const Rule<double>& rule, double& out) {
  out = value.ReadNumber(rule).value;
}

template <typename Integer>
void Read(const Value& value, const Rule<int64_t>& rule, Integer& out) {
  out = static_cast<Integer>(value.ReadInteger(rule).value);
}

void ReadMode(const Section& section, std::string_view about, StageMode& out) {
  Choice<StageMode> choice{.about = about, .fallback = out};
  for (const StageMode mode :
       {StageMode::kEnforce, StageMode::kShadow, StageMode::kOff}) {
    choice.words.emplace_back(Name(mode), mode);
  }
  out = section["mode"].ReadChoice(choice).value;
}

void ReadThrottle(const Section& section, AdaptiveThrottle::Config& out) {
  ReadMode(section, "whether what the backend would refuse is kept at home",
           out.mode);
  Read(section["k"],
       {.about = "how many are sent for each that is accepted",
        .floor = 1.01,
        .ceiling = 10,
        .fallback = out.k},
       out.k);
  Read(section["window"],
       {.about = "how far back it looks",
        .floor = seconds(1),
        .ceiling = hours(1),
        .fallback = out.window},
       out.window);
  Read(section["least_requests"],
       {.about = "requests below which nothing is refused",
        .floor = 0,
        .ceiling = 1'000'000,
        .fallback = out.least_requests},
       out.least_requests);
  Read(section["probe_interval"],
       {.about = "after which a request passes whatever the formula says",
        .floor = milliseconds(1),
        .ceiling = minutes(1),
        .fallback = out.probe_interval},
       out.probe_interval);
}

void ReadBreaker(const Section& section, CircuitBreaker::Config& out) {
  ReadMode(section, "whether a backend that fails is left alone", out.mode);
  Read(section["failure_ratio"],
       {.about = "the share of bad calls that opens it",
        .floor = 0,
        .ceiling = 1,
        .above_floor = true,
        .fallback = out.failure_ratio},
       out.failure_ratio);
  Read(section["window"],
       {.about = "how far back it looks",
        .floor = milliseconds(100),
        .ceiling = hours(1),
        .fallback = out.window},
       out.window);
  Read(section["least_calls"],
       {.about = "calls below which it stays closed",
        .floor = 1,
        .ceiling = 1'000'000,
        .fallback = out.least_calls},
       out.least_calls);
  Read(section["unreached"],
       {.about = "calls in a row that did not reach the backend and open it",
        .floor = 1,
        .ceiling = 1'000'000,
        .fallback = out.unreached},
       out.unreached);
  Read(section["slow_call"],
       {.about = "from which a call is bad whatever its answer; 0s: never",
        .ceiling = hours(1),
        .fallback = out.slow_call},
       out.slow_call);
  Read(section["open_for"],
       {.about = "how long it is open at first",
        .floor = milliseconds(1),
        .ceiling = hours(1),
        .fallback = out.open_for},
       out.open_for);
  const Value ceiling = section["open_for_ceiling"];
  Read(ceiling,
       {.about = "how long it is open at most",
        .floor = milliseconds(1),
        .ceiling = hours(1),
        .fallback = out.open_for_ceiling},
       out.open_for_ceiling);
  if (out.open_for_ceiling < out.open_for) {
    section.Complain("`open_for_ceiling` is below `open_for`",
                     "it begins with the one and ends with the other",
                     "raise `open_for_ceiling` to " +
                         FormatDuration(out.open_for) + " or more");
  }
  Read(section["probes"],
       {.about = "calls that must go well to close it",
        .floor = 1,
        .ceiling = CircuitBreaker::kMaxProbes,
        .fallback = out.probes},
       out.probes);
  Read(section["probe_lease"],
       {.about = "after which a probe without an end is given up",
        .floor = milliseconds(1),
        .ceiling = hours(1),
        .fallback = out.probe_lease},
       out.probe_lease);
}

void ReadLevel(const Section& section, LearnedLevel::Config& out) {
  ReadMode(section, "whether what the server calls hopeless is kept at home",
           out.mode);
  Read(section["probe_ratio"],
       {.about = "the share of it that is sent all the same",
        .floor = 0,
        .ceiling = 1,
        .fallback = out.probe_ratio},
       out.probe_ratio);
  Read(section["probe_interval"],
       {.about = "after which one is sent whatever the share",
        .floor = milliseconds(1),
        .ceiling = minutes(1),
        .fallback = out.probe_interval},
       out.probe_interval);
}

void ReadCauses(const Section& section, RetryRules& out) {
  const std::pair<std::string_view, bool RetryRules::*> causes[] = {
      {"unavailable", &RetryRules::on_unavailable},
      {"refused", &RetryRules::on_refused},
      {"untold", &RetryRules::untold},
      {"timed_out", &RetryRules::on_timed_out},
      {"error", &RetryRules::on_error}};
  Choice<bool RetryRules::*> choice{.about = "something to try again after"};
  std::string usual;
  for (const auto& [word, member] : causes) {
    choice.words.emplace_back(word, member);
    if (!(out.*member)) continue;
    usual += (usual.empty() ? "[\"" : ", \"") + std::string(word) + '"';
  }
  const Value value = section["on"];
  const std::vector<Value> words = value.ReadArray(
      "what is tried again", "a list", usual.empty() ? "[]" : usual + "]");
  if (!value.present()) return;
  for (const auto& cause : causes) out.*cause.second = false;
  for (const Value& word : words) {
    const auto cause = word.ReadChoice(choice);
    if (cause.given) out.*cause.value = true;
  }
}

void ReadRetries(const Section& section, ClientSettings& out) {
  RetryRules& rules = out.policy.retries;
  Read(section["max"],
       {.about = "retries after the first attempt",
        .floor = 0,
        .ceiling = 10,
        .fallback = rules.max_retries},
       rules.max_retries);
  ReadCauses(section, rules);
  Backoff& backoff = rules.backoff;
  Read(section["backoff"],
       {.about = "the first period, in which the wait is random",
        .ceiling = hours(1),
        .above_floor = true,
        .fallback = backoff.first},
       backoff.first);
  Read(section["factor"],
       {.about = "what each further period is multiplied by",
        .floor = 1,
        .ceiling = 10,
        .fallback = backoff.factor},
       backoff.factor);
  Read(section["ceiling"],
       {.about = "the longest period",
        .ceiling = hours(1),
        .above_floor = true,
        .fallback = std::max(backoff.ceiling, backoff.first)},
       backoff.ceiling);
  if (backoff.ceiling < backoff.first) {
    section.Complain(
        "`ceiling` is below `backoff`",
        "periods begin with the one and end with the other",
        "raise `ceiling` to " + FormatDuration(backoff.first) + " or more");
  }
  Read(section["max_tokens"],
       {.about = "tokens of the budget, of which a failure takes one",
        .floor = 1,
        .ceiling = 1000,
        .fallback = out.policy.tokens.max_tokens},
       out.policy.tokens.max_tokens);
  Read(section["token_ratio"],
       {.about = "what a success brings",
        .floor = 0.001,
        .ceiling = 1000,
        .fallback = out.policy.tokens.token_ratio},
       out.policy.tokens.token_ratio);
  Read(section["per_window"],
       {.about = "retries of the process in a window",
        .floor = 0,
        .ceiling = 100'000,
        .fallback = out.allowance.retries},
       out.allowance.retries);
  Read(section["window"],
       {.about = "the length of that window",
        .ceiling = hours(1),
        .above_floor = true,
        .fallback = out.allowance.window},
       out.allowance.window);
}

}  // namespace

ClientSettings ReadClientSettings(const Section& section,
                                  const ClientSettings& fallback) {
  ClientSettings out = fallback;
  ReadThrottle(section["throttle"].ReadTable("the adaptive throttle"),
               out.policy.throttle);
  ReadBreaker(section["breaker"].ReadTable("the circuit breaker"),
              out.policy.breaker);
  ReadLevel(section["level"].ReadTable("what overloaded servers tell"),
            out.policy.level);
  ReadRetries(section["retries"].ReadTable("what is tried again"), out);
  const Section deadline =
      section["deadline"].ReadTable("how much time calls get");
  Read(deadline["margin"],
       {.about = "what is kept back for the network",
        .ceiling = minutes(1),
        .fallback = out.policy.deadline.margin},
       out.policy.deadline.margin);
  Read(deadline["ceiling"],
       {.about = "the most that a call gets",
        .floor = milliseconds(1),
        .ceiling = hours(1),
        .fallback = out.policy.deadline.ceiling},
       out.policy.deadline.ceiling);
  const Section hedge = section["hedge"].ReadTable(
      "second attempts before the first is answered");
  Read(hedge["after"],
       {.about = "how long the first may take; 0s: no second one",
        .ceiling = hours(1),
        .fallback = out.policy.hedge_after},
       out.policy.hedge_after);
  return out;
}

}  // namespace weir::config
