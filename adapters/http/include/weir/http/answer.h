// What a shed request is answered over HTTP and gRPC.

#ifndef WEIR_HTTP_ANSWER_H_
#define WEIR_HTTP_ANSWER_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/decision.h"
#include "weir/policy.h"
#include "weir/time.h"

namespace weir::http {

// Codes of gRPC that we answer.
inline constexpr int kDeadlineExceeded = 4;
inline constexpr int kResourceExhausted = 8;
inline constexpr int kUnavailable = 14;

struct Answer {
  int status = 503;           // 503 or 429 as the policy says; 504.
  int64_t retry_after_s = 0;  // Retry-After; 0: do not send it.
  int grpc_status = kResourceExhausted;
  // grpc-retry-pushback-ms; -1: do not try again; nothing: do not send it.
  std::optional<int64_t> pushback_ms{};
};

// The answer to a decision whose verdict is kShed.
//
//   reason               status    Retry-After   gRPC                 pushback
//   deadline, expired    504       none          DEADLINE_EXCEEDED    -1
//   deadline, too near   policy's  yes           RESOURCE_EXHAUSTED   yes
//   paused               503       yes           UNAVAILABLE          yes
//   shutdown             503       yes           UNAVAILABLE          none
//   quota                429       yes           RESOURCE_EXHAUSTED   yes
//   stale, tiers         policy's  yes           RESOURCE_EXHAUSTED   yes
//   level, limit,        policy's  yes           RESOURCE_EXHAUSTED,  yes
//   system                                       or see below
//
// A decision with `never_retry` has pushback -1, whatever its reason.
//
// A push-back overrides the caller's own backoff, so there is none where this
// server knows nothing better: when it would be under 100 ms, which is to say
// "at once", and a caller that backs off from a second would spend all of its
// attempts in ten milliseconds; and when another replica may help, since a
// caller waits before it goes there, too.
//
// `expired`: the deadline had passed when it was decided.  UNAVAILABLE tells a
// client that another replica may help, and replicas of an overloaded service
// are most often overloaded too; so it is the code of what only this one is
// short of (level, limit, system, a deadline too near) when the policy says
// `try_elsewhere`, but not with `never_retry`: retries abound everywhere then.
// Retry-After is in whole seconds, at least 1, and comes with
// up to half (at least 1 s) on top by `random`, which must be uniform: those
// who were shed together shall not come back together.
Answer AnswerTo(const Decision& decision, const Policy& policy, bool expired,
                uint32_t random);

// Whether a Content-Type is gRPC's: application/grpc, alone or with a suffix
// or parameters.  Such a request wants status 200 and grpc-status.
bool IsGrpc(std::string_view content_type);

}  // namespace weir::http

#endif  // WEIR_HTTP_ANSWER_H_
