// The law that moves the limit: L = 1.5 * X * Rb.
//
// X is the throughput measured while requests wait, Rb the base latency: what
// one request takes when our own queueing is not in it.  While requests wait,
// inflight equals L, so latency is L / X whatever L is (Little) and says
// nothing about the base; only moving L does.  Hence the manoeuvres:
//
//   start  --grows no more-->  cruise  --256 units of overload-->  drain
//                                ^  |                                  |
//                                |  '--X fell--> rebase               | Rb
//                                |                                     v
//                                '----------------------------------- up
//
//   start   double L while throughput follows it.
//   drain   halve L, wait until that has happened, measure latency: a queue
//           in the service shows as a latency that follows L.
//   up      1.5 times the new L for a round: if throughput follows, Rb was
//           too low.  Only directly after a drain: a too low Rb reproduces
//           itself and a drain alone confirms it.
//   rebase  believe the latency, not the fall of throughput: wrongly taking a
//           slow dependency for lost capacity starts a spiral L -> X -> L,
//           wrongly taking lost capacity for latency costs a wait until
//           throughput is seen not to follow the raise, and a drain.
//
// With a known number of workers none of this is needed: L = 1.1 * workers.
//
// Source: docs/algorithms/law.md, which has the derivation and what each part
// buys.  Symbols there: L limit, X capacity, R_b base_latency, cv2 variation,
// D budget, lambda demand, Q* QueueTarget(), c SampleFactor().
//
// A round is the unit of measurement: from an instant on, so many completions.
// It is "bound" when from its opening on there never was a free place together
// with an empty queue; only then its throughput says what the service can do.
// Callers sum up completions themselves (in shards) and hand the sums over, so
// Step() is called a few times a round and not for each request.
//
// Plain data, no pointers: lives in a Region and is copied to be stepped.

#ifndef WEIR_LIMIT_LIMIT_LAW_H_
#define WEIR_LIMIT_LIMIT_LAW_H_

#include <cstdint>

#include "weir/time.h"

namespace weir {

// What the law needs of the policy.
struct LimitConfig {
  int32_t workers = 0;  // Known workers; 0: learn the limit.
  int32_t floor = 1;
  int32_t ceiling = 1'000'000;
  friend bool operator==(const LimitConfig&, const LimitConfig&) = default;
};

enum class LawMode : uint8_t {
  kStart,
  kCruise,
  kUp,
  kDrainWait,  // Until inflight has fallen to the halved limit.
  kDrainSkip,  // Until what was started before has left.
  kDrainTake,  // Measuring.
  kKnown,      // Workers are known.
};

// What happened since the last step.
struct LawInput {
  // Of the open round, from its opening on (not since the last step).  In
  // kDrainSkip and kDrainTake only requests that were admitted at or after
  // LimitLaw::round_from count, else those that finished at or after it.
  int64_t completions = 0;
  double latency_sum = 0;     // s
  double latency_sq_sum = 0;  // s^2
  bool bound = false;

  // Completions of unbound rounds that were admitted when inflight was above
  // neither its usual value nor capacity * base_latency (or was at most 1): no
  // queueing can be in their latency.
  // Their sum and the sum of min(100, (latency / base_latency - 1)^2).
  int64_t calm = 0;
  double calm_sum = 0;
  double calm_deviation_sum = 0;

  int64_t arrivals = 0;
  int64_t budgets = 0;    // Arrivals that had a deadline, and
  double budget_sum = 0;  // the sum of their time budgets, s.

  int64_t inflight = 0;
  int64_t queued = 0;         // Requests that wait.
  bool queue_formed = false;  // The queue was empty, and is no longer.
  bool queue_empty = false;
};

// What a step did, for counters.
struct LawEvents {
  bool round = false;
  bool growth = false;
  bool drain = false;
  bool rebase = false;
};

// Not thread-safe.  All of it is valid after Reset().
struct LimitLaw {
  // Memory of demand, s: tells .95 from 1.0 of capacity at 1000 requests/s.
  // Source: docs/algorithms/law.md, "Constants".
  static constexpr double kDemandMemory = 1;

  void Reset(const LimitConfig& config, Duration default_budget, Instant now);

  // Follows a changed policy; what was learned stays.
  void Configure(const LimitConfig& config, Instant now);

  LawEvents Step(const LawInput& input, Instant now);

  // Completions after which the open round may close, and not before when.
  int64_t round_size() const;
  Instant round_end() const;

  // Places: most inflight.  Never below 1.
  int64_t slots() const;
  // Most requests that wait while demand exceeds capacity.
  double queue_target() const;
  // Most requests that wait otherwise; infinite while nothing is known.
  double waiting_bound() const;

  LimitConfig config;
  LawMode mode = LawMode::kStart;
  bool distrust = false;  // base_latency was guessed; no verdict until drained.
  // More inflight gave more throughput the last time; nobody knows yet what
  // the service can do, so demand cannot be said to exceed it.
  bool searching = true;
  bool flat = false;  // Start: one round has not grown; the next one decides.
  bool growing = false;     // The last round that was bound has grown.
  bool falling = false;     // It was far below capacity.
  bool following = false;   // Throughput has followed a rebase, for a round.
  bool taken = false;       // Places were, although the queue was empty.
  bool proved = false;      // base_latency is known to have no queueing in it.
  bool overloaded = false;  // Demand exceeds capacity, and lasts.
  uint64_t round = 0;       // Number of the open round.
  Instant round_from{};     // When it opened; may lie ahead of now.

  double limit = 0;
  double capacity = 0;         // X, 1/s
  double capacity_trend = 0;   // X_s: the same without jumps
  double capacity_before = 0;  // X_ref: at the last check
  double served = 0;           // Throughput of unbound rounds, smoothed, 1/s
  double base_latency = 0;     // R_b, s; 0: unknown
  double variation = 1;        // cv2 of latency
  double calm_samples = 0;     // Weight of what base_latency rests on.
  double until_drain = 0;      // Completions until the next drain.
  double budget = 1;           // D, s
  double demand_count = 0;     // Decayed arrivals, and
  double demand_time = 0;      // the decayed time they came in, s.
  double excess = 0;           // Work offered beyond capacity, requests
  double throttled = 0;        // Throughput before a rebase; 0: judged.
  double start_count = 0;      // All samples of the start: their number,
  double start_sum = 0;        // sum
  double start_sq_sum = 0;     // and sum of squares.
  double round_mean = 0;       // Mean latency of the open round so far, s.
  Instant demand_at{};
  Instant drain_from{};  // When the measuring of a drain began.

  double demand() const {
    return demand_time > 0 ? demand_count / demand_time : 0;
  }

 private:
  // The share of Slack() that waiting may take, unless demand exceeds capacity.
  static constexpr double kWaitShare = 1. / 2;

  double SampleFactor() const;
  double Unit() const;
  double ProvedBase() const;
  double Slack() const;  // What a proved base leaves of the budget, s.
  double MostService() const;
  bool IsLate() const;
  double BaseOr(double fallback) const;
  void SetLimit(double gain, Instant now);
  void ClampLimit();
  void OpenRound(Instant from);
  void Learn(const LawInput& input);
  void FollowDemand(const LawInput& input, Instant now);
  void FollowExcess(const LawInput& input, double elapsed);
  void Rebase(double throughput, Instant now);
  bool EndRebase(double throughput, Instant now);
  void Trust(double throughput);
  void EndStart(const LawInput& input, bool grew);
  void EndRound(const LawInput& input, Instant now, LawEvents& events);
  void StepDrain(const LawInput& input, Instant now, LawEvents& events);
  void EndDrain(const LawInput& input, Instant now);
  void StepKnown(const LawInput& input, Instant now, LawEvents& events);
};

}  // namespace weir

#endif  // WEIR_LIMIT_LIMIT_LAW_H_
