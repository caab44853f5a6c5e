#include "weir/client/client_guard.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "weir/client/wire.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Step = Next::Step;
using Why = Next::Why;

constexpr Instant kStart{1000s};

std::unique_ptr<ClientGuard> MakeGuard(
    const ClientPolicy& policy = {},
    std::shared_ptr<RetryAllowance> allowance = nullptr) {
  auto guard = ClientGuard::Make(policy, std::move(allowance));
  EXPECT_TRUE(guard.ok());
  return *std::move(guard);
}

Answer Refused(std::optional<Duration> retry_after) {
  return {.kind = AnswerKind::kRefused, .retry_after = retry_after};
}

constexpr Answer kUnreached{.kind = AnswerKind::kUnavailable};

// One attempt of `call`, answered at once.
Next Try(ClientGuard& guard, ClientCall& call, const Answer& answer,
         Instant now = kStart, uint64_t draw = 0) {
  Attempt attempt = guard.Begin(call, now, draw);
  EXPECT_TRUE(attempt.send) << Name(attempt.dropped);
  return guard.End(call, attempt, answer, now, draw);
}

TEST(ClientGuardTest, AnAnswerEndsTheCall) {
  const auto guard = MakeGuard();
  ClientCall call{.deadline = kStart + 500ms};
  Attempt attempt = guard->Begin(call, kStart, 0);
  ASSERT_TRUE(attempt.send);
  EXPECT_EQ(attempt.budget, 498ms);
  EXPECT_EQ(attempt.previous_attempts, 0);
  EXPECT_EQ(guard->End(call, attempt, {}, kStart, 0).step, Step::kDone);
  EXPECT_EQ(guard->End(call, attempt, {}, kStart, 0).step, Step::kWait);
  EXPECT_EQ(call.open, 0);
}

TEST(ClientGuardTest, ThereAreTwoRetriesAndTheyAreCounted) {
  const auto guard = MakeGuard();
  ClientCall call;
  EXPECT_EQ(Try(*guard, call, kUnreached).step, Step::kRetry);
  EXPECT_EQ(Try(*guard, call, kUnreached).step, Step::kRetry);
  Attempt third = guard->Begin(call, kStart, 0);
  EXPECT_EQ(third.previous_attempts, 2);
  const Next next = guard->End(call, third, kUnreached, kStart, 0);
  EXPECT_EQ(next.step, Step::kGiveUp);
  EXPECT_EQ(next.why, Why::kAttempts);
  EXPECT_EQ(guard->counts().retries, 2u);
}

TEST(ClientGuardTest, WaitsAreRandomInExponentialPeriods) {
  ClientPolicy policy;
  policy.retries.backoff = {.first = 3s, .factor = 2, .ceiling = 12s};
  policy.retries.max_retries = 3;
  const auto guard = MakeGuard(policy);
  ClientCall call;
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  for (const Duration wait : {1500ms, 3000ms, 6000ms}) {
    EXPECT_EQ(Try(*guard, call, kUnreached, kStart, kHalf).at, kStart + wait);
  }
}

TEST(ClientGuardTest, PushbackIsObeyedAndBackoffBeginsAnewAfterIt) {
  const auto guard = MakeGuard();
  ClientCall call;
  EXPECT_EQ(Try(*guard, call, kUnreached).step, Step::kRetry);
  EXPECT_EQ(call.backoff_step, 1);
  const Next next = Try(*guard, call, Refused(2s));
  EXPECT_EQ(next.step, Step::kRetry);
  EXPECT_EQ(next.at, kStart + 2s);
  EXPECT_EQ(call.backoff_step, 0);
}

TEST(ClientGuardTest, NobodyRetriesWhoWasToldNotTo) {
  const auto guard = MakeGuard();
  ClientCall call;
  const Answer never{.kind = AnswerKind::kUnavailable, .never_retry = true};
  const Next next = Try(*guard, call, never);
  EXPECT_EQ(next.step, Step::kGiveUp);
  EXPECT_EQ(next.why, Why::kTold);
}

TEST(ClientGuardTest, OnlyRetriableAnswersAreTriedAgain) {
  const auto why = [](const ClientPolicy& policy, const Answer& answer) {
    const auto guard = MakeGuard(policy);
    ClientCall call;
    return Try(*guard, call, answer).why;
  };
  const Answer error{.kind = AnswerKind::kError};
  const Answer late{.kind = AnswerKind::kTimedOut};
  EXPECT_EQ(why({}, error), Why::kNotRetriable);
  EXPECT_EQ(why({}, late), Why::kNotRetriable);
  EXPECT_EQ(why({}, Refused(std::nullopt)), Why::kNotRetriable);
  EXPECT_EQ(why({}, {.kind = AnswerKind::kCancelled}), Why::kCancelled);
  ClientPolicy all;
  all.retries.untold = all.retries.on_timed_out = all.retries.on_error = true;
  EXPECT_EQ(why(all, error), Why::kNone);
  EXPECT_EQ(why(all, late), Why::kNone);
  EXPECT_EQ(why(all, Refused(std::nullopt)), Why::kNone);
  ClientPolicy none;
  none.retries.on_unavailable = none.retries.on_refused = false;
  EXPECT_EQ(why(none, kUnreached), Why::kNotRetriable);
  EXPECT_EQ(why(none, Refused(1s)), Why::kNotRetriable);
}

// Three layers, each with three attempts, above one that refuses: without this
// rule it would be asked 27 times.
TEST(ClientGuardTest, WhatMustNotHappenTwiceIsRepeatedOnlyIfItDidNotHappen) {
  ClientPolicy policy;
  policy.retries.on_timed_out = policy.retries.on_error = true;
  policy.retries.untold = true;
  policy.hedge_after = 10ms;
  const auto guard = MakeGuard(policy);
  const auto step = [&](AnswerKind kind, bool repeatable) {
    ClientCall call{.repeatable = repeatable};
    return Try(*guard, call, {.kind = kind}).step;
  };
  for (const AnswerKind kind : {AnswerKind::kTimedOut, AnswerKind::kError}) {
    EXPECT_EQ(step(kind, true), Step::kRetry);
    EXPECT_EQ(step(kind, false), Step::kGiveUp);
  }
  EXPECT_EQ(step(AnswerKind::kRefused, false), Step::kRetry);
  EXPECT_EQ(step(AnswerKind::kUnavailable, false), Step::kRetry);

  const auto fresh = MakeGuard(policy);
  ClientCall call{.repeatable = false};
  Attempt attempt = fresh->Begin(call, kStart, 0);
  ASSERT_TRUE(attempt.send);
  EXPECT_FALSE(fresh->MayHedge(call, kStart + 10ms));
  call.repeatable = true;
  EXPECT_TRUE(fresh->MayHedge(call, kStart + 10ms));
}

TEST(ClientGuardTest, OnlyTheLayerDirectlyAboveTheRefuserRetries) {
  int asked = 0;
  std::vector<std::unique_ptr<ClientGuard>> layers;
  for (int i = 0; i < 3; ++i) layers.push_back(MakeGuard());
  const auto ask = [&](const auto& self, size_t layer) -> Answer {
    if (layer == layers.size()) {
      ++asked;
      return kUnreached;
    }
    ClientCall call;
    for (;;) {
      Attempt attempt = layers[layer]->Begin(call, kStart, 0);
      const Answer answer = self(self, layer + 1);
      const Next next = layers[layer]->End(call, attempt, answer, kStart, 0);
      if (next.step == Step::kRetry) continue;
      EXPECT_EQ(next.step, Step::kGiveUp);
      EXPECT_TRUE(next.never_retry_above);
      return {.kind = AnswerKind::kUnavailable,
              .never_retry = next.never_retry_above};
    }
  };
  ask(ask, 0);
  EXPECT_EQ(asked, 3);
}

TEST(ClientGuardTest, ARetryThatCannotBeInTimeIsNotMade) {
  const auto guard = MakeGuard();
  ClientCall call{.deadline = kStart + 1s};
  const Next next = Try(*guard, call, Refused(1s));
  EXPECT_EQ(next.why, Why::kDeadline);
  EXPECT_DOUBLE_EQ(guard->tokens().tokens(kStart),
                   9);  // For the refusal alone.
}

TEST(ClientGuardTest, WhatWasNeverSentCostsNoBudget) {
  const auto guard = MakeGuard({}, std::make_shared<RetryAllowance>(
                                       RetryAllowance::Config{.retries = 0}));
  const Answer unreached{.kind = AnswerKind::kUnavailable, .unreached = true};
  ClientCall call;
  EXPECT_EQ(Try(*guard, call, unreached).step, Step::kRetry);
  EXPECT_EQ(Try(*guard, call, unreached).step, Step::kRetry);
  EXPECT_EQ(Try(*guard, call, unreached).why, Why::kAttempts);
  EXPECT_DOUBLE_EQ(guard->tokens().tokens(kStart), 10);
  ClientCall other;
  EXPECT_EQ(Try(*guard, other, kUnreached).why, Why::kBudget);
}

TEST(ClientGuardTest, ABackendThatIsGoneIsLeftAloneAfterAHandfulOfCalls) {
  const auto guard = MakeGuard();
  const auto send = [&](const Answer& answer) {
    ClientCall call;
    Attempt attempt = guard->Begin(call, kStart, 0);
    if (attempt.send) guard->End(call, attempt, answer, kStart, 0);
    return attempt.dropped;
  };
  for (int i = 0; i < 4000; ++i) send({});
  const Answer unreached{.kind = AnswerKind::kUnavailable, .unreached = true};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(send(unreached), DropReason::kNone);
  EXPECT_EQ(send(unreached), DropReason::kBreaker);
  // Nobody refused anything.
  EXPECT_EQ(guard->throttle().RefusalRatio(Criticality::kImportant, kStart), 0);
}

TEST(ClientGuardTest, WhomWeirRefusedWithoutSayingWhenComesBackByItsBackoff) {
  const auto guard = MakeGuard();
  ClientCall call;
  Answer refused = Refused(std::nullopt);
  refused.by_weir = true;
  EXPECT_EQ(Try(*guard, call, refused, kStart, uint64_t{1} << 63).at,
            kStart + 50ms);
}

TEST(ClientGuardTest, AnAttemptWithoutTimeLeftIsNotSent) {
  const auto guard = MakeGuard();
  ClientCall call{.deadline = kStart + 1s};
  EXPECT_EQ(guard->Begin(call, kStart + 998ms, 0).dropped,
            DropReason::kDeadline);
  EXPECT_EQ(call.attempts, 0);
}

TEST(ClientGuardTest, CancellationOfTheScopeReachesItsCalls) {
  const auto guard = MakeGuard();
  std::stop_source source;
  const CallScope scope{.criticality = Criticality::kVital,
                        .client = 5,
                        .deadline = kStart + 1s,
                        .cancelled = source.get_token()};
  ClientCall call = scope.MakeCall();
  EXPECT_EQ(call.criticality, Criticality::kVital);
  EXPECT_EQ(call.client, 5u);
  EXPECT_EQ(call.deadline, kStart + 1s);
  Attempt attempt = guard->Begin(call, kStart, 0);
  source.request_stop();
  EXPECT_EQ(guard->End(call, attempt, kUnreached, kStart, 0).why,
            Why::kCancelled);
  EXPECT_EQ(guard->Begin(call, kStart, 0).dropped, DropReason::kCancelled);
}

TEST(ClientGuardTest, RetriesStopWhenHalfOfTheTokensAreGone) {
  ClientPolicy policy;
  policy.throttle.mode = policy.breaker.mode = StageMode::kOff;
  const auto guard = MakeGuard(policy);
  int retries = 0;
  for (int i = 0; i < 100; ++i) {
    ClientCall call;
    const Next next = Try(*guard, call, kUnreached);
    if (next.step == Step::kRetry) {
      ++retries;
    } else {
      EXPECT_EQ(next.why, Why::kBudget);
    }
  }
  EXPECT_EQ(retries, 4);
}

TEST(ClientGuardTest, AProcessMakesSixtyRetriesAMinuteWhateverItCalls) {
  const auto allowance =
      std::make_shared<RetryAllowance>(RetryAllowance::Config());
  const auto one = MakeGuard({}, allowance);
  const auto other = MakeGuard({}, allowance);
  int retries = 0;
  for (int i = 0; i < 1000; ++i) {
    ClientGuard& guard = i % 2 == 0 ? *one : *other;
    for (int good = 0; good < 10; ++good) {
      ClientCall call;
      (void)Try(guard, call, {});
    }
    ClientCall call;
    retries +=
        Try(guard, call, kUnreached, kStart + i * 1ms).step == Step::kRetry ? 1
                                                                            : 0;
  }
  EXPECT_EQ(retries, 60);
}

TEST(ClientGuardTest, ABrokenBackendIsLeftAloneAndProbed) {
  ClientPolicy policy;
  policy.throttle.mode = StageMode::kOff;
  const auto guard = MakeGuard(policy);
  for (int i = 0; i < 20; ++i) {
    ClientCall call;
    (void)Try(*guard, call, {.kind = AnswerKind::kError});
  }
  ClientCall call;
  EXPECT_EQ(guard->Begin(call, kStart, 0).dropped, DropReason::kBreaker);
  for (int i = 0; i < 3; ++i) (void)Try(*guard, call, {}, kStart + 1s);
  EXPECT_EQ(guard->breaker().state(kStart + 1s),
            CircuitBreaker::State::kClosed);
}

TEST(ClientGuardTest, AProbeOfTheBreakerPassesTheStagesAfterIt) {
  ClientPolicy policy;
  policy.throttle.probe_interval = 1min;
  policy.throttle.least_requests = 20;
  const auto guard = MakeGuard(policy);
  for (int i = 0; i < 20; ++i) {
    ClientCall call;
    (void)Try(*guard, call, {.kind = AnswerKind::kTimedOut});
  }
  ClientCall call;
  ASSERT_GT(guard->throttle().RefusalRatio(call.criticality, kStart), 0.9);
  ASSERT_EQ(guard->Begin(call, kStart, 0).dropped, DropReason::kBreaker);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(guard->Begin(call, kStart + 1s, 0).send) << i;
  }
  EXPECT_EQ(guard->Begin(call, kStart + 1s, 0).dropped, DropReason::kBreaker);
}

TEST(ClientGuardTest, AServiceThatWeirHasPausedDoesNotOpenTheBreaker) {
  const auto guard = MakeGuard();
  Answer paused = kUnreached;
  wire::ReadAnswerHeader("weir-reason", "paused", paused);
  for (int i = 0; i < 100; ++i) {
    ClientCall call;
    Attempt attempt = guard->Begin(call, kStart + i * 1s, 0);
    if (attempt.send) guard->End(call, attempt, paused, kStart + i * 1s, 0);
  }
  EXPECT_EQ(guard->breaker().state(kStart + 100s),
            CircuitBreaker::State::kClosed);
}

TEST(ClientGuardTest, AStormOfRefusalsDoesNotOpenTheBreaker) {
  const auto guard = MakeGuard();
  for (int i = 0; i < 1000; ++i) {
    ClientCall call;
    Attempt attempt = guard->Begin(call, kStart + i * 1ms, ~uint64_t{0});
    (void)guard->End(call, attempt, Refused(std::nullopt), kStart + i * 1ms, 0);
  }
  EXPECT_EQ(guard->breaker().state(kStart + 1s),
            CircuitBreaker::State::kClosed);
  EXPECT_GT(guard->counts().dropped[size_t(DropReason::kThrottle)], 900u);
}

TEST(ClientGuardTest, ALevelInAnAnswerKeepsTheHopelessAtHome) {
  const auto guard = MakeGuard();
  ClientCall vital{.criticality = Criticality::kVital};
  const Answer answer{.level = OverloadLevel{Criticality::kDeferrable, 200ms}};
  (void)Try(*guard, vital, answer);
  ClientCall call{.criticality = Criticality::kSheddable};
  (void)guard->Begin(call, kStart, 0);  // The first is a probe.
  EXPECT_EQ(guard->Begin(call, kStart, 0).dropped, DropReason::kLevel);
  EXPECT_TRUE(NeverRetryAbove(DropReason::kLevel));
  EXPECT_TRUE(guard->Begin(vital, kStart, 0).send);
  EXPECT_TRUE(guard->Begin(call, kStart + 200ms, 0).send);
}

TEST(ClientGuardTest, ALevelIsOverWhenTheBackendTakesOnOneOfTheHopeless) {
  const OverloadLevel level{Criticality::kDeferrable, 200ms};
  const auto ended_by = [&](const Answer& answer) {
    const auto guard = MakeGuard();
    ClientCall before{.criticality = Criticality::kDeferrable};
    Attempt early = guard->Begin(before, kStart, 0);
    ClientCall refused{.criticality = Criticality::kDeferrable};
    Attempt told = guard->Begin(refused, kStart, 0);
    (void)guard->End(refused, told,
                     {.kind = AnswerKind::kRefused, .level = level},
                     kStart + 1ms, 0);
    // On its way before the level was known.
    (void)guard->End(before, early, {}, kStart + 2ms, 0);
    EXPECT_TRUE(guard->level().active(kStart + 2ms));
    ClientCall probe{.criticality = Criticality::kDeferrable};
    Attempt attempt = guard->Begin(probe, kStart + 3ms, 0);
    EXPECT_TRUE(attempt.send);
    (void)guard->End(probe, attempt, answer, kStart + 4ms, 0);
    return !guard->level().active(kStart + 4ms);
  };
  EXPECT_TRUE(ended_by({}));
  EXPECT_TRUE(ended_by({.kind = AnswerKind::kError}));
  EXPECT_FALSE(ended_by({.level = level}));
  EXPECT_FALSE(ended_by({.kind = AnswerKind::kRefused}));
  EXPECT_FALSE(ended_by({.kind = AnswerKind::kTimedOut}));
  EXPECT_FALSE(ended_by({.kind = AnswerKind::kUnavailable}));
}

TEST(ClientGuardTest, AStageInShadowCountsAndDropsNothing) {
  ClientPolicy policy;
  policy.throttle.mode = policy.breaker.mode = policy.level.mode =
      StageMode::kShadow;
  const auto guard = MakeGuard(policy);
  const Answer answer{.kind = AnswerKind::kTimedOut,
                      .level = OverloadLevel{Criticality::kVital, 200ms}};
  for (int i = 0; i < 100; ++i) {
    ClientCall call;
    (void)Try(*guard, call, answer);
  }
  const ClientCounts counts = guard->counts();
  EXPECT_EQ(counts.sent, 100u);
  for (const DropReason reason :
       {DropReason::kBreaker, DropReason::kLevel, DropReason::kThrottle}) {
    EXPECT_EQ(counts.dropped[size_t(reason)], 0u) << Name(reason);
    EXPECT_GT(counts.would_drop[size_t(reason)], 50u) << Name(reason);
  }
}

ClientPolicy Hedging() {
  ClientPolicy policy;
  policy.hedge_after = 50ms;
  return policy;
}

TEST(ClientGuardTest, OfTwoAttemptsTheFirstAnswerCounts) {
  const auto guard = MakeGuard(Hedging());
  ClientCall call;
  Attempt first = guard->Begin(call, kStart, 0);
  ASSERT_TRUE(guard->MayHedge(call, kStart + 50ms));
  Attempt second = guard->Begin(call, kStart + 50ms, 0);
  EXPECT_FALSE(guard->MayHedge(call, kStart + 100ms));
  EXPECT_EQ(guard->End(call, second, kUnreached, kStart + 60ms, 0).step,
            Step::kWait);
  EXPECT_EQ(guard->End(call, first, {}, kStart + 70ms, 0).step, Step::kDone);
}

TEST(ClientGuardTest, HedgesComeOutOfTheBudget) {
  const auto guard = MakeGuard(Hedging());
  int hedges = 0;
  for (int i = 0; i < 100; ++i) {
    ClientCall call;
    ASSERT_TRUE(guard->Begin(call, kStart, 0).send);
    hedges += guard->MayHedge(call, kStart + 50ms) ? 1 : 0;
  }
  EXPECT_EQ(hedges, 5);
  EXPECT_EQ(guard->counts().hedges, 5u);
}

TEST(ClientGuardTest, ThereAreNoHedgesWhileTheBackendSheds) {
  const auto guard = MakeGuard(Hedging());
  ClientCall other;
  (void)Try(*guard, other,
            {.level = OverloadLevel{Criticality::kSheddable, 200ms}});
  ClientCall call{.criticality = Criticality::kVital};
  ASSERT_TRUE(guard->Begin(call, kStart, 0).send);
  EXPECT_FALSE(guard->MayHedge(call, kStart + 50ms));
  EXPECT_TRUE(guard->MayHedge(call, kStart + 250ms));
}

TEST(ClientGuardTest, APolicyOutOfRangeIsRefusedByName) {
  ClientPolicy policy;
  policy.retries.max_retries = 11;
  const auto guard = ClientGuard::Make(policy);
  ASSERT_FALSE(guard.ok());
  EXPECT_EQ(guard.error().message, "`retries.max` must lie between 0 and 10");
}

}  // namespace
}  // namespace weir
