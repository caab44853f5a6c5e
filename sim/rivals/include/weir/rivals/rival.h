// Rival: somebody else's overload controller, held so that a simulator can run
// any of them without knowing which it is.
//
// A controller is a plain class that inherits the abilities it has, out of six
// with one function each.  What it needs from the world follows from them:
//
//   Limiter  a limit on inflight; the simulator rejects or queues beyond it
//   Gate     decides at arrival
//   Taker    decides when a request would leave the queue and start
//   Learner  is told how each request that ran ended
//   Watcher  is told the machine's signals, at a period of its own
//   Sorter   says in which order the queue is to be emptied
//
// An event goes: Admit() -> (inflight < Limit(), or wait) -> Take() -> Learn().
// Whatever refuses a request ends its way.  A law that has a limit can thus run
// rejecting at once or behind a queue that the simulator owns, and one that
// measures its own queue sees it in Take().
//
// All of it is state + input + now -> decision: no clock, no global
// randomness.  Not thread-safe.

#ifndef WEIR_RIVALS_RIVAL_H_
#define WEIR_RIVALS_RIVAL_H_

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "weir/decision.h"
#include "weir/request.h"
#include "weir/time.h"

namespace weir::rivals {

inline constexpr int32_t kNoLimit = std::numeric_limits<int32_t>::max();

// `inflight` requests have started and not ended; `queued` ones were admitted
// and wait to start, wherever that queue is: in front of the server, or inside
// it for a rival that sits there.  A law that counts all it let in adds both.
struct Arrival {
  Instant now{};
  int32_t inflight = 0;    // This request not counted.
  int32_t queued = 0;      // This request not counted.
  Duration queue_delay{};  // How long the head of the queue has waited so far.
  Criticality criticality = Criticality::kImportant;
  uint16_t kind = 0;    // Which sort of request: Request::resource.
  uint64_t client = 0;  // A stable hash of who asks.
  int32_t attempt = 0;  // Of the same request, from 0; callers know it.
  uint64_t draw = 0;    // 64 uniform random bits, new for each arrival.
};

// A request that could start now.
struct Start {
  Instant now{};
  Duration queue_delay{};  // How long it has waited.
  int32_t queued = 0;      // This request not counted.
  Criticality criticality = Criticality::kImportant;
  uint16_t kind = 0;
  Duration patience = Duration::max();  // Arrival to deadline.
};

// A request that ended, or, for what sits at the caller, an answer.
struct Finish {
  Instant now{};
  Duration latency{};             // Since it started.
  Duration queue_delay{};         // From its arrival to its start.
  int32_t inflight_at_start = 1;  // Itself counted.
  int32_t inflight = 1;           // Now, itself still counted.
  int32_t queued = 0;             // Now.
  Outcome outcome = Outcome::kOk;
  bool refused = false;  // The server refused it; only callers are told of it.
  Criticality criticality = Criticality::kImportant;
  uint16_t kind = 0;
  int32_t attempt = 0;  // As in Arrival.
};

struct Signals {
  Instant now{};
  double cpu_ratio = 0;  // Busy share of all cores since the last signals.
  double load1 = -1;     // The system's one-minute load; below 0: unknown.
};

enum class Order : uint8_t {
  kAny,          // As the simulator's own queue does it.
  kOldestFirst,  // FIFO.
  kNewestFirst,  // LIFO.
};

class Limiter {
 public:
  // Most inflight allowed, >= 0; kNoLimit when none is in force.
  virtual int32_t Limit(Instant now) = 0;

 protected:
  ~Limiter() = default;
};

class Gate {
 public:
  // False refuses the request.
  virtual bool Admit(const Arrival& arrival) = 0;

 protected:
  ~Gate() = default;
};

class Taker {
 public:
  // False refuses the request instead of starting it.
  virtual bool Take(const Start& start) = 0;

 protected:
  ~Taker() = default;
};

class Learner {
 public:
  virtual void Learn(const Finish& finish) = 0;

 protected:
  ~Learner() = default;
};

class Watcher {
 public:
  virtual void Watch(const Signals& signals) = 0;
  // How often it wants to be called.
  virtual Duration period() const = 0;

 protected:
  ~Watcher() = default;
};

class Sorter {
 public:
  virtual Order QueueOrder(Instant now) = 0;

 protected:
  ~Sorter() = default;
};

// Owns one controller and answers for the abilities it lacks: no limit, admit,
// take, oldest first.  Move-only.
class Rival {
 public:
  Rival() = default;  // Has no ability: lets everything pass.

  template <typename Law>
  explicit Rival(std::unique_ptr<Law> law) {
    if constexpr (std::derived_from<Law, Limiter>) limiter_ = law.get();
    if constexpr (std::derived_from<Law, Gate>) gate_ = law.get();
    if constexpr (std::derived_from<Law, Taker>) taker_ = law.get();
    if constexpr (std::derived_from<Law, Learner>) learner_ = law.get();
    if constexpr (std::derived_from<Law, Watcher>) watcher_ = law.get();
    if constexpr (std::derived_from<Law, Sorter>) sorter_ = law.get();
    law_ = std::shared_ptr<void>(std::move(law));
  }

  Rival(Rival&&) = default;
  Rival& operator=(Rival&&) = default;

  int32_t Limit(Instant now) {
    return limiter_ != nullptr ? limiter_->Limit(now) : kNoLimit;
  }
  bool Admit(const Arrival& arrival) {
    return gate_ == nullptr || gate_->Admit(arrival);
  }
  bool Take(const Start& start) {
    return taker_ == nullptr || taker_->Take(start);
  }
  void Learn(const Finish& finish) {
    if (learner_ != nullptr) learner_->Learn(finish);
  }
  void Watch(const Signals& signals) {
    if (watcher_ != nullptr) watcher_->Watch(signals);
  }
  Order QueueOrder(Instant now) {
    return sorter_ != nullptr ? sorter_->QueueOrder(now) : Order::kAny;
  }

  bool limits() const { return limiter_ != nullptr; }
  bool gates() const { return gate_ != nullptr; }
  bool takes() const { return taker_ != nullptr; }
  bool learns() const { return learner_ != nullptr; }
  bool watches() const { return watcher_ != nullptr; }
  bool sorts() const { return sorter_ != nullptr; }
  // How often to call Watch(); zero when never.
  Duration watch_period() const {
    return watcher_ != nullptr ? watcher_->period() : Duration::zero();
  }

 private:
  std::shared_ptr<void> law_;  // Erases the type; never shared.
  Limiter* limiter_ = nullptr;
  Gate* gate_ = nullptr;
  Taker* taker_ = nullptr;
  Learner* learner_ = nullptr;
  Watcher* watcher_ = nullptr;
  Sorter* sorter_ = nullptr;
};

template <typename Law, typename... Args>
Rival MakeRival(Args&&... args) {
  return Rival(std::make_unique<Law>(std::forward<Args>(args)...));
}

// What a law measures that wraps the whole handling of a request: the time
// since it was let in, whether it waited after that or ran.
constexpr Duration SinceAdmitted(const Finish& finish) {
  return finish.queue_delay + finish.latency;
}

// How an outcome reads in the terms of limits that know "success", "ignore"
// and "dropped": an answer that came too late is a drop, as a caller sees it;
// a cancelled or ignored request teaches nothing.
constexpr bool Teaches(Outcome outcome) {
  return outcome == Outcome::kOk || outcome == Outcome::kError ||
         outcome == Outcome::kTimedOut;
}
constexpr bool Dropped(Outcome outcome) {
  return outcome == Outcome::kTimedOut;
}

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_RIVAL_H_
