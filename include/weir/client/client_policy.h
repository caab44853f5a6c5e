// What a caller wants of its half of weir, checked.

#ifndef WEIR_CLIENT_CLIENT_POLICY_H_
#define WEIR_CLIENT_CLIENT_POLICY_H_

#include <cstdint>
#include <optional>

#include "weir/client/adaptive_throttle.h"
#include "weir/client/backoff.h"
#include "weir/client/circuit_breaker.h"
#include "weir/client/deadline.h"
#include "weir/client/overload_level.h"
#include "weir/client/retry_budget.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

// What is tried again, and how often.
struct RetryRules {
  // After the first attempt.  Source: [SRE2016] chapter 21, three attempts.
  // [0, 10]; 0: never.
  int32_t max_retries = 2;
  Backoff backoff{};
  // The backend could not be reached: nothing was done, another replica may
  // help.
  bool on_unavailable = true;
  // It refused, and said when to come back.  Also without having said so when
  // `untold` is set: harmful where many callers share one backend.
  bool on_refused = true;
  bool untold = false;
  // These two may have been executed: only for what may be done twice.
  bool on_timed_out = false;
  bool on_error = false;

  std::optional<Error> Check() const;
  bool operator==(const RetryRules&) const = default;
};

// For the calls of one backend: a service, with all of its replicas.
struct ClientPolicy {
  AdaptiveThrottle::Config throttle{};
  CircuitBreaker::Config breaker{};
  LearnedLevel::Config level{};
  RetryRules retries{};
  RetryTokens::Config tokens{};
  DeadlineRules deadline{};
  // A second attempt after so long without an answer; zero: none.  Chosen by
  // the user: the p95 of the backend costs 5 % more calls.
  // Source: [DEAN2013], hedged requests.
  Duration hedge_after{};

  // The first broken rule, or nothing.
  std::optional<Error> Check() const;
  bool operator==(const ClientPolicy&) const = default;
};

}  // namespace weir

#endif  // WEIR_CLIENT_CLIENT_POLICY_H_
