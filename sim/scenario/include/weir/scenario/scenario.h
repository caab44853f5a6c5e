// A scenario: who asks for what, when, and what the service behind can do.
//
// One TOML file describes it (docs/scenarios.md has every key).  `weir storm`
// and `weir backend` play it for real, the simulator in virtual time; both
// read this struct and draw from the same streams (random.h), so that a run of
// one can be held against a run of the other.
//
// Instants are durations since the start of the scenario.  Loads are multiples
// of capacity, which follows from the service (capacity.h) and is never
// written down.

#ifndef WEIR_SCENARIO_SCENARIO_H_
#define WEIR_SCENARIO_SCENARIO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/client/client_policy.h"
#include "weir/request.h"
#include "weir/time.h"

namespace weir::scenario {

// A random or fixed span of time.  service_time.h draws from it.
struct Span {
  enum class Distribution : uint8_t {
    kConstant,     // Always `mean`.
    kExponential,  // Mean `mean`.
    kLognormal,    // Mean `mean`; `sigma` is the deviation of the logarithm.
    kUniform,      // Between 0 and twice `mean`.
    kBimodal,      // `slow` with probability `slow_ratio`, else `fast`.
  };
  Distribution distribution = Distribution::kConstant;
  Duration mean{};        // >= 0.  Bimodal: what the three fields below imply.
  double sigma = 1;       // Lognormal only; (0, 4].
  Duration fast{};        // Bimodal only.
  Duration slow{};        // Bimodal only.
  double slow_ratio = 0;  // Bimodal only; [0, 1].
};

// A step of the work of one request.  Steps run one after another.
struct Stage {
  enum class Kind : uint8_t {
    kCpu,   // The workers of the replica, in its discipline.
    kIo,    // A delay without a queue: disk, a dependency with room.
    kLock,  // One at a time, first come first served.
    kPool,  // `size` at a time, first come first served.
  };
  std::string name{};  // For changes and messages.
  Kind kind = Kind::kCpu;
  Span time{};
  int32_t size = 1;  // Pool only; [1, 1'000'000].
  double ratio = 1;  // Requests that take this step at all; (0, 1].
  std::optional<uint16_t> route{};  // Only requests of this route take it.
};

// From `at` on something is different.  Each optional field that is set says
// what; `over` makes speed and time move linearly from what they were.
struct Change {
  Duration at{};
  Duration over{};
  std::vector<uint16_t> replicas{};  // Which ones; empty: all.
  std::optional<int32_t> workers{};  // Of each; running work is finished.
  std::optional<double> speed{};   // Multiplies the rate of cpu work; (0, 100].
  std::optional<bool> up{};        // False: the replica is gone, its work too.
  size_t stage = 0;                // Which one `time` and `slow_ratio` are for.
  std::optional<Duration> time{};  // New mean (not for bimodal).
  std::optional<double> slow_ratio{};  // New mix (bimodal only).
};

// The replica stands still: garbage collection, a stalled host.
struct Pause {
  Duration length{};    // > 0.
  Duration every{};     // Mean start-to-start; 0: once, at `first`.
  Duration first{};     // Start of the first one.
  bool regular = true;  // False: gaps are exponential.
  std::vector<uint16_t> replicas{};  // Which ones; empty: all.
};

// Requests that go wrong.
struct Failure {
  double ratio = 1;  // Of the requests; (0, 1].
  Duration from{};
  std::optional<Duration> until{};  // Not set: the end.
  // How long until it is known, without a worker, instead of the stages.  Not
  // set: when all stages are done.
  std::optional<Duration> after{};
  std::optional<uint16_t> route{};  // Only requests of this route.
};

// What a tier asks of others after its own stages, before it answers.
struct Call {
  size_t tier = 0;        // Index into Scenario::tiers, above the caller's own.
  int32_t times = 1;      // [1, 1000].
  bool parallel = false;  // All at once (fan-out); else one after another.
};

enum class Discipline : uint8_t {
  kFcfs,     // One request per worker, the others wait in order.
  kSharing,  // All at once, sharing the workers' speed equally.
};

enum class Balancer : uint8_t {
  kRoundRobin,
  kTwoChoices,   // The less loaded (by own requests) of two random replicas.
  kLeastLoaded,  // The least loaded as reported by the replicas themselves.
};

// A service: replicas that are alike but for changes and pauses.
struct Tier {
  std::string name = "service";
  int32_t workers = 1;  // Of each replica; [1, 1'000'000].
  Discipline discipline = Discipline::kFcfs;
  std::vector<Stage> stages{};    // At least one.
  std::vector<Change> changes{};  // In order of `at`.
  std::vector<Pause> pauses{};
  std::vector<Failure> failures{};  // The first that applies counts.
  Duration reject_cost{};           // Cpu time that refusing one request takes.
  // Whether work is dropped when its deadline passes.  Real services rarely
  // do, so neither does the default.
  bool cancel_at_deadline = false;
  int32_t replicas = 1;  // [1, 1000].
  Balancer balancer = Balancer::kRoundRobin;
  Span network{};             // One way, on top of what the callers' side has.
  bool guard = true;          // Whether a guard stands before each replica.
  bool client_guard = false;  // Whether its callers carry a client guard.
  std::vector<Call> calls{};
};

struct Class {
  Criticality criticality = Criticality::kImportant;
  double share = 1;     // Of the offered requests; all shares sum to 1.
  Duration deadline{};  // Filled from Scenario::deadline when not its own.
};

// A kind of request: the resource that it names.
struct Route {
  std::string name = "/";
  double share = 1;  // All shares sum to 1.
};

enum class Spacing : uint8_t { kPoisson, kConstant };

// Where the guard of the entry tier sits: what it is told when a caller leaves
// while the service works for it.
enum class Seat : uint8_t {
  kService,  // Nothing: it holds the place until the work is done.
  kProxy,    // That it has left: its place is free, and the service works on.
};

struct Phase {
  enum class Shape : uint8_t {
    kConstant,  // `load` throughout.
    kRamp,      // From `load` to `to`, linearly.
    kSquare,    // Every `every`: `load`, then `to` for the last `peak_for`.
    kBursts,    // As square, but both lengths are exponential (MMPP).
  };
  std::string name{};
  Duration duration{};
  Shape shape = Shape::kConstant;
  double load = 0;  // >= 0, as a multiple of capacity.
  double to = 0;    // Where a ramp ends; the height of a peak.
  Duration every{};
  Duration peak_for{};
  // Multiples of what the capacity is at each instant, not at the start.
  bool of_current = false;
  // Shares of the classes (index: Scenario::classes) in this phase.
  std::vector<double> shares{};
  // Shares of the routes (index: Scenario::routes) in it; empty: their own.
  // Capacity, of which loads are multiples, is that of their own.
  std::vector<double> mix{};
  // False: warm-up; played, but in no figure.
  bool measured = true;
};

// Clients that ask on top of the phases' load.
struct Hog {
  int32_t count = 1;  // [1, 100'000]; they share `load` equally.
  double load = 0;    // All of them together, as a multiple of capacity.
  size_t cls = 0;     // Index into Scenario::classes.
  Duration from{};
  std::optional<Duration> until{};  // Not set: the end.
};

// Clients that each wait for their answer, think, and ask again.
struct ClosedClients {
  int32_t count = 1;  // [1, 1'000'000].
  Duration think{};   // From an answer, or giving up, to the next request; > 0.
  bool exponential = true;          // False: exactly that long.
  size_t cls = 0;                   // Index into Scenario::classes.
  Duration from{};                  // When they begin to think.
  std::optional<Duration> until{};  // Nothing new is asked then; or the end.
};

struct Clients {
  int32_t count = 1000;  // [1, 1'000'000].
  double zipf = 0;       // Weight of client k is 1 / k^zipf; [0, 3].  0: equal.
  std::vector<Hog> hogs{};  // Numbered after the `count` others.
  // On top of all these, and numbered after them.
  std::vector<ClosedClients> closed{};
  // Clients that obey Retry-After and throttle themselves.
  double cooperative_ratio = 0;
};

struct Retries {
  int32_t count = 0;  // Retries per layer, after the first attempt; [0, 20].
  bool on_timeout = true;
  bool on_shed = true;
  bool on_error = true;
  Duration backoff = std::chrono::milliseconds(50);  // Before the first retry.
  double factor = 2;  // Of each further backoff; [1, 10].
  Duration ceiling = std::chrono::seconds(10);  // Of the backoff.
  double jitter = 1;        // Share of the backoff that is random; [0, 1].
  int32_t layers = 1;       // Callers in a row that each retry; [1, 5].
  double budget_ratio = 0;  // Retries per first attempt at most; 0: no budget.
};

// Of callers that carry a client guard (Tier::client_guard).
struct CallerRules {
  // Processes that the clients are spread over, each with a guard of its own.
  // A replica that calls other tiers is a process.
  int32_t processes = 10;  // [1, 10'000].
  // Clients that carry one where the entry tier asks for it; the others are
  // plain.  (0, 1].
  double share = 1;
  ClientPolicy policy{};
  RetryAllowance::Config allowance{};
};

struct Hedging {
  Duration after{};  // Zero: none.  Else a second attempt after this long.
};

// What [expect] demands of a report, and what it hopes for.
struct Bound {
  enum class Scope : uint8_t { kAll, kPhase, kClass };
  Scope scope = Scope::kAll;
  std::string of{};      // The phase's or class's name; empty for kAll.
  std::string metric{};  // As in report.h: "goodput_ratio", "latency_p99_ms".
  std::optional<double> min{};
  std::optional<double> max{};
  // What the figure is meant to reach; only beside one of the two, which says
  // on which side of it is good.  Missing it breaks nothing.
  std::optional<double> goal{};
};

struct Scenario {
  std::string name{};
  std::string description{};
  uint64_t seed = 1;
  Spacing arrivals = Spacing::kPoisson;

  // Time budget of an attempt from its intended start; an answer within it is
  // good.  (0, 1 h].
  Duration deadline = std::chrono::seconds(1);
  // When the caller gives up on an attempt and closes.  At least `deadline`.
  Duration timeout = std::chrono::seconds(1);
  // No retry starts later than this after the first attempt.
  std::optional<Duration> patience{};
  Seat seat = Seat::kService;
  // How long after it let a request go on the proxy answers with an error, by
  // itself; the service works on.  Only with Seat::kProxy.
  std::optional<Duration> proxy_timeout{};

  std::vector<Phase> phases{};   // At least one.
  std::vector<Class> classes{};  // Most critical first; at least one.
  std::vector<Route> routes{};   // At least one.
  std::vector<Tier> tiers{};     // [0] is the entry; at least one.
  Clients clients{};
  Retries retries{};
  Hedging hedging{};
  CallerRules callers{};
  std::vector<Bound> bounds{};

  // The sum of all phases.
  Duration length() const;
  // When phase `i` begins.
  Duration PhaseStart(size_t i) const;
  // All clients that there are, of each kind.
  int32_t ClientCount() const;

  // Plays everything `factor` times as fast or slow: multiplies the length of
  // phases and bursts and the instant of changes and pauses, but neither
  // service times nor deadlines nor loads.  factor > 0.
  void Stretch(double factor);

  // Ends it at `end` (> 0): phases that would begin later are gone.
  void Truncate(Duration end);
};

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_SCENARIO_H_
