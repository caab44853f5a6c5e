// How a run went: one shape for `weir storm` and the simulator.

#ifndef WEIR_SCENARIO_REPORT_H_
#define WEIR_SCENARIO_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/scenario/scenario.h"
#include "weir/time.h"

namespace weir::scenario {

// Of a phase, a class or the whole run.  Requests count where they were
// intended to start; a request and its retries are one.
struct Figures {
  std::string name{};
  uint64_t offered = 0;  // good + late + shed + failed.
  uint64_t good = 0;     // Answered within the deadline.
  uint64_t late = 0;     // Answered after it, or given up by the caller.
  uint64_t shed = 0;     // Refused: 429 or 503.
  uint64_t failed = 0;   // No connection, cut off, or another error answer.
  uint64_t attempts = 0;
  double ideal = 0;          // What the ideal would have answered (ideal.h).
  double goodput_ratio = 1;  // good / ideal; 1 when both are 0.
  double work_ratio = 1;     // The same in service time instead of requests.
  // Of the requests that came while the ideal shed nothing: the share shed.
  double false_shed_ratio = 0;
  // From the intended start of a request to its answer, of all that were
  // admitted, late ones included.  One that was given up counts with the time
  // at which it was: from the timeout up these are lower bounds.
  Duration p50{};
  Duration p99{};
  Duration p999{};
  // From the start of an overload to the first of its 100 ms steps from which
  // on every second reaches 0.95 of the ideal's work; of several the longest.
  // All of it if there is no such step; nothing if there was no overload.
  std::optional<Duration> converge{};
  // From the end of an overload until no request is shed, late or failed any
  // more, up to 10 ms; of several the longest.
  std::optional<Duration> recover{};
};

// How well the generator kept to its schedule.
struct SendLag {
  Duration p99{};
  Duration max{};
};

// How often attempts for a route ended in one way.
struct Answers {
  std::string route{};
  // "200"; "503 level", with weir's reason; "given up", "no answer", "unsent".
  std::string answer{};
  uint64_t count = 0;
};

struct Report {
  std::string scenario;
  uint64_t seed = 0;
  Figures all;
  std::vector<Figures> phases;   // In order.
  std::vector<Figures> classes;  // Most critical first.
  // Service time spent on requests that were not good, of all spent; where it
  // is known.
  std::optional<double> wasted_ratio;
  // What only a simulator sees; docs/algorithms/evaluation.md.
  std::optional<double> fairness{};
  std::optional<double> others_good_ratio{};
  std::optional<double> inversions_per_1000{};
  std::optional<double> unsteadiness{};
  std::optional<SendLag> send_lag;  // Of a real run.
  std::vector<Answers> answers{};   // The same; the most frequent first.
  // When somebody stopped a real run; its figures are those up to then.
  std::optional<Duration> stopped{};
  // Why these figures should not be trusted; empty: they may be.
  std::string invalid;

  double amplification() const;  // Attempts per request.
};

// A figure by its name in [expect] and in JSON: offered, good, late, shed,
// failed, good_ratio, shed_ratio, goodput_ratio, work_ratio, false_shed_ratio,
// latency_p50_ms, latency_p99_ms, latency_p999_ms, converge_ms, recover_ms,
// amplification.
bool IsMetric(std::string_view name);
// Nothing when it does not apply (converge_ms without an overload).
std::optional<double> Metric(const Figures& figures, std::string_view name);

// Those of a whole run alone: wasted_ratio, fairness, others_good_ratio,
// inversions_per_1000, unsteadiness.
bool IsMetricOfRun(std::string_view name);

// The figure that a bound is on; nothing when this run has none.
std::optional<double> ValueOf(const Report& report, const Bound& bound);
// "work_ratio of up-2@1".
std::string NameOf(const Bound& bound);

// One message for each of the scenario's bounds that the report breaks.
std::vector<std::string> BrokenBounds(const Scenario& scenario,
                                      const Report& report);

// One JSON object on one line, without a newline.  docs/scenarios.md has it.
std::string ToJson(const Report& report);

// Tables for a person: phases, classes, and what follows from them.
// `timeout`: latencies from there on are shown as lower bounds.
std::string ToText(const Report& report, Duration timeout);

// Two runs of one scenario side by side.
std::string ToText(const Report& left, std::string_view left_name,
                   const Report& right, std::string_view right_name,
                   Duration timeout);

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_REPORT_H_
