// The parts of a scenario file that read.cc puts together.

#ifndef WEIR_SCENARIO_READ_PARTS_H_
#define WEIR_SCENARIO_READ_PARTS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/config/document.h"
#include "weir/scenario/scenario.h"

namespace weir::scenario {

// Chosen: longer runs are several scenarios; 30 times the longest here.
inline constexpr Duration kLongest = std::chrono::hours(24);

// Bounds and defaults that several keys share.
inline config::Rule<Duration> TimeRule(std::string_view about,
                                       std::optional<Duration> fallback = {}) {
  return {.about = about, .ceiling = kLongest, .fallback = fallback};
}
inline config::Rule<double> RatioRule(std::string_view about, double fallback) {
  return {.about = about, .floor = 0, .ceiling = 1, .fallback = fallback};
}

// Complains when a name is used twice; `seen` keeps those so far.
void CheckUnique(const config::Value& value, const std::string& name,
                 std::vector<std::pair<std::string, config::Place>>& seen);

// Complains unless `shares` sum to 1.
void CheckShares(const config::Value& list, std::string_view key,
                 const std::vector<double>& shares);

// The keys `time`, `distribution`, `sigma`, `fast`, `slow` and `slow_ratio`.
Span ReadSpan(const config::Section& section, std::string_view about,
              bool required);

// `[service]` or `[[tiers]]`.  Always at least one tier with a stage.
std::vector<Tier> ReadTiers(const config::Section& root,
                            const std::vector<Route>& routes);

// `[[phases]]`.  `capacity`: requests per second at the start.
std::vector<Phase> ReadPhases(const config::Section& root,
                              const std::vector<Class>& classes,
                              const std::vector<Route>& routes,
                              double capacity);

// A load under `key` or, per second, under `rate_key`.
struct Load {
  double value = 0;
  bool given = false;
  bool as_rate = false;
};
Load ReadLoad(const config::Section& section, std::string_view key,
              std::string_view rate_key, std::string_view about,
              double capacity);

// `[retries]`.
Retries ReadRetries(const config::Section& root);

// `[client_guard]`, which does what `scenario`'s other callers do unless it
// says otherwise.
CallerRules ReadCallers(const config::Section& root, const Scenario& scenario);

// `[expect]`.
std::vector<Bound> ReadBounds(const config::Section& root,
                              const Scenario& scenario);

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_READ_PARTS_H_
