// ClientGuard decides for each call to one backend: whether to send it, and
// whether to try again.
//
//   ClientCall call = scope.MakeCall();              // Or fill one in.
//   Attempt attempt = guard.Begin(call, now, draw);
//   if (!attempt.send) return Fail(attempt.dropped);
//   Send(attempt.budget, attempt.previous_attempts); // wire.h has the headers.
//   ...
//   Next next = guard.End(call, attempt, answer, now, draw);
//   switch (next.step) {
//     case Next::Step::kDone:   return answer;
//     case Next::Step::kRetry:  SetTimer(next.at); ...   // Then Begin() again.
//     case Next::Step::kWait:   ...                      // For the other one.
//     case Next::Step::kGiveUp: return Fail(next.why, next.never_retry_above);
//   }
//
// Stages before an attempt, in order: cancelled, deadline, breaker, level,
// throttle.  A probe of the breaker passes the two after it, so that none takes
// what another then refuses.  Each of those three can be in shadow: it then
// counts what it would have dropped.
//
// A call that was dropped is over, unless another of its attempts is open: to
// try again what was refused at home would only be refused there again.
//
// Threads: any, without locks; a ClientCall and its attempts belong to one
// thread at a time.  Nothing allocates after Make(), blocks, reads a clock or
// does I/O.  An attempt that is never ended is harmless.
//
// Cost: docs/algorithms/client.md.

#ifndef WEIR_CLIENT_CLIENT_GUARD_H_
#define WEIR_CLIENT_CLIENT_GUARD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "weir/client/client_call.h"
#include "weir/client/client_policy.h"
#include "weir/splitmix64.h"

namespace weir {

// What a guard has done so far.
struct ClientCounts {
  uint64_t sent = 0;
  std::array<uint64_t, kDropReasons> dropped{};     // By DropReason.
  std::array<uint64_t, kDropReasons> would_drop{};  // By stages in shadow.
  uint64_t retries = 0;
  uint64_t hedges = 0;
  std::array<uint64_t, kGiveUps> gave_up{};  // By Next::Why.
};

class ClientGuard {
 public:
  // Fails when the policy breaks a rule.  `allowance` is what all guards of the
  // process share; null: this one has its own, of the default size.
  static Result<std::unique_ptr<ClientGuard>> Make(
      const ClientPolicy& policy,
      std::shared_ptr<RetryAllowance> allowance = nullptr);

  // Decides an attempt that is about to be made.
  [[nodiscard]] Attempt Begin(ClientCall& call, Instant now, uint64_t draw);

  // An attempt ended.  Does nothing, and answers kWait, when it has ended
  // before or was never sent.
  Next End(ClientCall& call, Attempt& attempt, const Answer& answer,
           Instant now, uint64_t draw);

  // `hedge_after` has passed without an answer: whether to make a second
  // attempt now (with Begin()).  Hedges come out of the budgets of retries, and
  // there are none while the backend is short of room.
  bool MayHedge(const ClientCall& call, Instant now);

  const ClientPolicy& policy() const { return policy_; }
  ClientCounts counts() const;

  // For dashboards.
  const AdaptiveThrottle& throttle() const { return throttle_; }
  const CircuitBreaker& breaker() const { return breaker_; }
  const LearnedLevel& level() const { return level_; }
  const RetryTokens& tokens() const { return tokens_; }

 private:
  using Counter = std::atomic<uint64_t>;

  ClientGuard(const ClientPolicy& policy,
              std::shared_ptr<RetryAllowance> allowance);

  DropReason Judge(const ClientCall& call, CircuitBreaker::Pass& pass,
                   Instant now, uint64_t draw);
  // Whether a stage that would drop an attempt does.
  bool Drops(StageMode mode, DropReason reason);
  void Learn(const ClientCall& call, const Attempt& attempt,
             const Answer& answer, Instant now);
  Next Fail(ClientCall& call, const Answer& answer, Instant now, uint64_t draw);
  Next::Why Retry(ClientCall& call, const Answer& answer, bool may, Instant now,
                  uint64_t draw, Instant& at);
  bool IsRetriable(const ClientCall& call, const Answer& answer) const;

  const ClientPolicy policy_;
  AdaptiveThrottle throttle_;
  CircuitBreaker breaker_;
  LearnedLevel level_;
  RetryTokens tokens_;
  std::shared_ptr<RetryAllowance> allowance_;

  Counter sent_{0};
  std::array<Counter, kDropReasons> dropped_{};
  std::array<Counter, kDropReasons> would_drop_{};
  Counter retries_{0};
  Counter hedges_{0};
  std::array<Counter, kGiveUps> gave_up_{};
};

}  // namespace weir

#endif  // WEIR_CLIENT_CLIENT_GUARD_H_
