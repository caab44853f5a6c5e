// What a caller's adapter and a ClientGuard tell each other.

#ifndef WEIR_CLIENT_CLIENT_CALL_H_
#define WEIR_CLIENT_CLIENT_CALL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>

#include "weir/client/circuit_breaker.h"
#include "weir/client/overload_level.h"
#include "weir/request.h"
#include "weir/time.h"

namespace weir {

// Something that is asked of a backend, with all of its attempts.  Belongs to
// one thread at a time.
struct ClientCall {
  Criticality criticality = Criticality::kImportant;
  uint64_t client = 0;          // On whose behalf; 0: unknown.
  Instant deadline = kNever;    // Of the whole call, retries included.
  std::stop_token cancelled{};  // Of whoever wants the answer.
  // May be executed twice.  If not, it is never hedged, and tried again only
  // when it was certainly not executed: refused, or not reached.
  bool repeatable = true;

  // Kept by the guard.
  int32_t attempts = 0;
  int32_t open = 0;  // Attempts that were sent and not ended.
  int32_t retries = 0;
  int32_t backoff_step = 0;  // Begins anew when the server said when to come.
  bool answered = false;
};

// What a request that is being served hands on to the calls made for it: pass
// it explicitly, to wherever those are made.  Nothing is kept in threads, which
// coroutines change.
struct CallScope {
  Criticality criticality = Criticality::kImportant;
  uint64_t client = 0;
  Instant deadline = kNever;
  std::stop_token cancelled{};

  ClientCall MakeCall() const {
    return {.criticality = criticality,
            .client = client,
            .deadline = deadline,
            .cancelled = cancelled};
  }
};

// Why an attempt is not sent.
enum class DropReason : uint8_t {
  kNone,
  kCancelled,  // Whoever wants the answer has gone.
  kDeadline,   // No time is left for it.
  kBreaker,    // The backend fails; it is left alone for a while.
  kLevel,      // The backend says that it refuses all of this criticality.
  kThrottle,   // The backend has refused too many of late.
  kCount,
};
inline constexpr size_t kDropReasons = static_cast<size_t>(DropReason::kCount);
std::string_view Name(DropReason reason);  // "none", "cancelled", ...

// Whether a drop means overload below: then your own caller must not try again
// either, as with Next::never_retry_above.
constexpr bool NeverRetryAbove(DropReason reason) {
  return reason == DropReason::kBreaker || reason == DropReason::kLevel ||
         reason == DropReason::kThrottle;
}

struct Attempt {
  bool send = false;
  DropReason dropped = DropReason::kNone;
  // When sent: what to put on the wire.
  Duration budget{};              // Time that is left.
  int32_t previous_attempts = 0;  // Of the same call.

  // Kept by the guard.
  Instant sent_at{};
  CircuitBreaker::Pass pass{};
  bool open = false;
};

// How an attempt ended, as its caller saw it.
enum class AnswerKind : uint8_t {
  kOk,           // Answered; also with an error that is the caller's own.
  kError,        // The backend took it on and failed.
  kRefused,      // It did not take it on, for lack of room.
  kUnavailable,  // It was not reached, or says that it is not there.
  kTimedOut,     // No answer in time.
  kCancelled,    // Its caller has gone.  Teaches nothing.
};

struct Answer {
  AnswerKind kind = AnswerKind::kOk;
  // With kUnavailable: nothing was sent, as when the connection was refused.
  // It has cost the backend nothing, so to try again costs no budget.
  bool unreached = false;
  // Push-back: when the server expects room, or that nobody need try again.
  std::optional<Duration> retry_after{};
  bool never_retry = false;
  // weir says why it refused it (weir-reason): the service itself is well.
  bool by_weir = false;
  std::optional<OverloadLevel> level{};
};

// What becomes of a call after one of its attempts has ended.
struct Next {
  enum class Step : uint8_t {
    kDone,    // It is answered.  Cancel other attempts that are open.
    kRetry,   // Begin() the next attempt at `at`.
    kWait,    // Another attempt is still open.
    kGiveUp,  // It has failed.
  };
  enum class Why : uint8_t {
    kNone,
    kNotRetriable,  // As this kind of answer is.
    kTold,          // The server said not to.
    kAttempts,      // There were enough.
    kBudget,        // Retries have used up what they may cost.
    kDeadline,      // It would be over before an answer.
    kCancelled,
    kCount,
  };
  Step step = Step::kDone;
  Why why = Why::kNone;  // With kGiveUp.
  Instant at{};          // With kRetry.
  // With kGiveUp: the failure is overload below, and only the layer directly
  // above the one that refused may try again: tell your own caller not to.
  bool never_retry_above = false;
};
inline constexpr size_t kGiveUps = static_cast<size_t>(Next::Why::kCount);
std::string_view Name(Next::Why why);  // "none", "not_retriable", ...

}  // namespace weir

#endif  // WEIR_CLIENT_CLIENT_CALL_H_
