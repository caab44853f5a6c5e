// The law that moves the limit: how much may run at once.
//
// A refusal needs a proof that is fresh: that more inflight would not give more
// throughput.  So the law is always in one of these modes:
//
//   search   nobody knows what more inflight would bring: no overload begins,
//            and the limit doubles while throughput follows it, or by the clock
//            while nothing was ever answered.
//   cruise   more brings no more: L = 1.5 * X * Rb.
//   up       half as much again for a round: is that still so?
//   drain    less for a while: what does one request take by itself?  Also
//            when most answers come too late, or not at all: is that since so
//            many are at work?
//   known    the policy says how many workers there are.
//
//   search --throughput follows no more--> cruise, known
//   cruise, known --not held back for 10 s, X fell, nothing is answered-->
//   search
//   cruise, known --now and then--> up --throughput follows--> search
//                                      --it does not--> cruise, known
//   cruise --now and then--> drain --> up
//   search, cruise, known --answers in vain--> drain --less does as much-->
//   cruise, else --> search
//
// X is the throughput of answers measured while requests wait, Rb the base
// latency: what one request takes when no queueing of ours is in it.  While
// requests wait, inflight equals L, so latency is L / X whatever L is (Little)
// and says nothing about the base; only moving L does.
//
// A round is the unit of measurement: from an instant on, so many answers.  It
// is "bound" when from its opening on there never was a free place together
// with an empty queue; only then its throughput says what the service can do.
// Callers sum up answers themselves (in shards) and hand the sums over, so
// Step() is called a few times a round and not for each request.
//
// Must hold after each call (CheckInvariants): floor <= limit <= ceiling; X,
// Rb, cv2 and E finite and not negative.  An overload begins only where the
// limit was proved or is known (Demand::Follow); a search does not end one.  A
// round never opens before the one that it follows.
//
// Source: docs/algorithms/law.md, which has the derivation and what each part
// buys.  Symbols there: L limit, X capacity, R_b base_latency, cv2 variation,
// D budget, lambda demand.rate(), Q* queue_target(), c SampleFactor().
//
// Plain data, no pointers: lives in a Region and is copied to be stepped.

#ifndef WEIR_LIMIT_LIMIT_LAW_H_
#define WEIR_LIMIT_LIMIT_LAW_H_

#include <cstdint>
#include <variant>

#include "weir/limit/demand.h"
#include "weir/limit/law_modes.h"
#include "weir/time.h"

namespace weir {

// What the law needs of the policy.
struct LimitConfig {
  int32_t workers = 0;  // Known workers; 0: learn the limit.
  int32_t floor = 1;
  int32_t ceiling = 1'000'000;
  friend bool operator==(const LimitConfig&, const LimitConfig&) = default;
};

// As observers see it; the order is that of LimitLaw::Mode.
enum class LawMode : uint8_t { kSearch, kCruise, kUp, kDrain, kKnown };

// What happened since the last step.
struct LawInput {
  // Of the open round, from its opening on (not since the last step): what
  // ended at or after LimitLaw::round_from.
  int64_t completions = 0;    // Answers,
  double latency_sum = 0;     // s
  double latency_sq_sum = 0;  // s^2
  int64_t late = 0;           // Of those, after their deadline.
  int64_t lost = 0;           // Timed out, or their caller left.
  bool bound = false;

  // Completions of unbound rounds that were admitted when inflight was above
  // neither its usual value nor capacity * base_latency (or was at most 1): no
  // queueing can be in their latency.
  // Their sum and the sum of min(100, (latency / base_latency - 1)^2).
  int64_t calm = 0;
  double calm_sum = 0;
  double calm_deviation_sum = 0;

  int64_t arrivals = 0;
  int64_t refused = 0;    // Requests that left for want of a place.
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
  using Samples = law::Samples;
  using Search = law::Search;
  using Cruise = law::Cruise;
  using Up = law::Up;
  using Drain = law::Drain;
  using Known = law::Known;
  using Mode = std::variant<Search, Cruise, Up, Drain, Known>;

  void Reset(const LimitConfig& config, Duration default_budget, Instant now);

  // Follows a changed policy; what was learned stays.
  void Configure(const LimitConfig& config, Instant now);

  LawEvents Step(const LawInput& input, Instant now);

  // Answers after which the open round may close, and not before when.
  int64_t round_size() const;
  Instant round_end() const;

  // What a request will take in service at this limit, most likely, s; infinite
  // while nothing is known.
  double service_latency() const;
  // Places: most inflight.  Never below 1.
  int64_t slots() const;
  // Most requests that wait while an overload stands.
  double queue_target() const;
  // Most requests that wait now.
  double waiting_bound(Instant now) const;
  LawMode mode_name() const { return static_cast<LawMode>(mode.index()); }

  LimitConfig config;
  Mode mode;
  Demand demand;
  double limit = 0;

  // The open round.
  uint64_t round = 0;         // Its number.
  Instant round_from{};       // When it opened.
  double round_mean = 0;      // Mean latency in it so far, s.
  double round_stay = 0;      // The mean time that a place was taken in it, s.
  int64_t round_refused = 0;  // In it so far, for want of a place.
  int64_t heard = 0;          // Answers in it so far, and
  Instant heard_at{};         // when the last of them was seen.

  bool answered = false;       // Anything ever was.
  double capacity = 0;         // X, 1/s; 0: unknown.
  double capacity_trend = 0;   // X, smoothed over rounds, without jumps,
  double capacity_before = 0;  // and as it was at the last check.
  double served = 0;           // Throughput of unbound rounds, smoothed, 1/s.
  double base_latency = 0;     // R_b, s; 0: unknown.
  double variation = 1;        // cv2 of latency.
  double calm_samples = 0;     // Weight of what base_latency rests on.
  bool proved = false;    // base_latency is known to have no queueing in it.
  bool distrust = false;  // It was guessed: the next drain is due.
  double budget = 1;      // D, s

  double until_drain = 0;   // Answers until the next drain,
  double until_up = 0;      // until it is asked again whether more helps,
  double up_interval = 0;   // and from then to the next time, in units.
  Instant bound_at{};       // When a round was bound last.
  Instant asked_at{};       // When more was last seen to bring nothing.
  Instant retreat_from{};   // No retreat before.
  double retreat_wait = 0;  // How long not after one in vain, s.
  double peak = 0;          // Most inflight seen since
  Instant relaxed_at{};     // the unused limit was looked at.

 private:
  Mode Next(Search search, const LawInput& input, Instant now,
            LawEvents& events);
  Mode Next(Cruise cruise, const LawInput& input, Instant now,
            LawEvents& events);
  Mode Next(Up up, const LawInput& input, Instant now, LawEvents& events);
  Mode Next(Drain drain, const LawInput& input, Instant now, LawEvents& events);
  Mode Next(Known known, const LawInput& input, Instant now, LawEvents& events);

  Search RaiseEarly(Search search, const LawInput& input, Instant now);
  Mode EndSearch(const Search& search, double throughput, Instant now);
  Mode Doubt(double throughput, Instant now);
  bool IsInVain(const LawInput& input, Instant now) const;
  Mode Retreat(const LawInput& input, Instant now, LawEvents& events);
  Mode StartDrain(Drain drain, double to, Instant now, LawEvents& events);
  Mode EndDrain(const Drain& drain, const LawInput& input, Instant now);
  Mode Settled(Instant now);
  void SeeDemandLimited(const LawInput& input, double throughput, Instant now);
  void Relax(Instant now);
  void FollowBoundRound(double throughput, bool jump);

  double SampleFactor() const;
  double Unit() const;
  double ProvedBase() const;
  double Slack() const;  // What a proved base leaves of the budget, s.
  double MostService() const;
  double Throughput(const LawInput& input, Instant now) const;
  bool HeldBack(const LawInput& input, Instant now) const;
  bool RoundIsOver(const LawInput& input, Instant now) const;
  bool IsBalanced(const LawInput& input, Instant now) const;
  bool IsSilent(Instant now, double seconds) const;
  bool IsFresh(Instant now) const;
  void SetLimit(double limit, Instant now);
  void OpenRound(Instant from);
  void Learn(const LawInput& input, Instant now);
  void CheckInvariants() const;
};

}  // namespace weir

#endif  // WEIR_LIMIT_LIMIT_LAW_H_
