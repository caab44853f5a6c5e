#include "weir/client/circuit_breaker.h"

#include <gtest/gtest.h>

#include <vector>

#include "weir/splitmix64.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Pass = CircuitBreaker::Pass;
using Result = CircuitBreaker::Result;
using State = CircuitBreaker::State;

constexpr Instant kStart{1000s};

// One call that ends as it is told, at once; false when it is not allowed.
bool Call(CircuitBreaker& breaker, Result result, Instant now,
          Duration took = {}) {
  const Pass pass = breaker.Admit(now);
  if (pass.allowed) breaker.Finish(pass, result, took, now);
  return pass.allowed;
}

void Break(CircuitBreaker& breaker, Instant now) {
  for (int i = 0; i < 100; ++i) Call(breaker, Result::kBad, now);
  ASSERT_EQ(breaker.state(now), State::kOpen);
}

TEST(CircuitBreakerTest, AFewErrorsNeverOpenIt) {
  CircuitBreaker breaker{CircuitBreaker::Config{}};
  SplitMix64 draws(5);
  Instant now = kStart;
  for (int i = 0; i < 6000; ++i, now += 1ms) {
    const bool bad = ToUnit(draws.Next()) < 0.03;
    ASSERT_TRUE(Call(breaker, bad ? Result::kBad : Result::kGood, now)) << i;
  }
}

TEST(CircuitBreakerTest, ItOpensWhenHalfOfAtLeastTwentyCallsWentWrong) {
  CircuitBreaker breaker({.open_for = 1s, .open_for_ceiling = 30s});
  for (int i = 0; i < 10; ++i) Call(breaker, Result::kGood, kStart);
  for (int i = 0; i < 9; ++i) Call(breaker, Result::kBad, kStart);
  EXPECT_EQ(breaker.state(kStart), State::kClosed);
  Call(breaker, Result::kBad, kStart);
  EXPECT_EQ(breaker.state(kStart), State::kOpen);
  EXPECT_FALSE(breaker.Admit(kStart + 999ms).allowed);
  EXPECT_TRUE(breaker.Admit(kStart + 1s).probe());
}

TEST(CircuitBreakerTest, RefusalsAndCancelsNeverCount) {
  CircuitBreaker breaker{CircuitBreaker::Config{}};
  for (int i = 0; i < 1000; ++i) Call(breaker, Result::kNothing, kStart);
  for (int i = 0; i < 19; ++i) Call(breaker, Result::kBad, kStart);
  EXPECT_EQ(breaker.state(kStart), State::kClosed);
}

TEST(CircuitBreakerTest, SlowCallsAreBad) {
  CircuitBreaker breaker({.slow_call = 100ms});
  for (int i = 0; i < 20; ++i) Call(breaker, Result::kGood, kStart, 100ms);
  EXPECT_EQ(breaker.state(kStart), State::kClosed);
  for (int i = 0; i < 20; ++i) Call(breaker, Result::kGood, kStart, 101ms);
  EXPECT_EQ(breaker.state(kStart), State::kOpen);
}

TEST(CircuitBreakerTest, HalfOpenLetsExactlyItsProbesRunAndThenCloses) {
  CircuitBreaker breaker({.probes = 3});
  Break(breaker, kStart);
  const Instant now = kStart + 1s;
  std::vector<Pass> passes;
  for (int i = 0; i < 10; ++i) {
    const Pass pass = breaker.Admit(now);
    if (pass.allowed) passes.push_back(pass);
  }
  ASSERT_EQ(passes.size(), 3u);
  for (const Pass& pass : passes) {
    EXPECT_EQ(breaker.state(now), State::kHalfOpen);
    breaker.Finish(pass, Result::kGood, {}, now);
    breaker.Finish(pass, Result::kGood, {}, now);  // Twice does nothing.
  }
  EXPECT_EQ(breaker.state(now), State::kClosed);
  EXPECT_TRUE(Call(breaker, Result::kBad, now));  // The past is forgotten.
  EXPECT_EQ(breaker.state(now), State::kClosed);
}

TEST(CircuitBreakerTest, OneBadProbeOpensItAgain) {
  CircuitBreaker breaker{CircuitBreaker::Config{}};
  Break(breaker, kStart);
  const Instant now = kStart + 1s;
  const Pass other = breaker.Admit(now);
  Call(breaker, Result::kBad, now);
  EXPECT_EQ(breaker.state(now), State::kOpen);
  breaker.Finish(other, Result::kGood, {}, now);  // Of an earlier try.
  EXPECT_EQ(breaker.state(now), State::kOpen);
}

TEST(CircuitBreakerTest, AProbeThatHangsFreesItsPlaceWhenItsLeaseIsOver) {
  CircuitBreaker breaker({.probes = 1, .probe_lease = 5s});
  Break(breaker, kStart);
  const Pass lost = breaker.Admit(kStart + 1s);
  ASSERT_TRUE(lost.probe());
  EXPECT_FALSE(breaker.Admit(kStart + 5999ms).allowed);
  const Pass next = breaker.Admit(kStart + 6s);
  ASSERT_TRUE(next.probe());
  breaker.Finish(lost, Result::kBad, 5s, kStart + 6s);  // Too late to matter.
  EXPECT_EQ(breaker.state(kStart + 6s), State::kHalfOpen);
  breaker.Finish(next, Result::kGood, {}, kStart + 6s);
  EXPECT_EQ(breaker.state(kStart + 6s), State::kClosed);
}

TEST(CircuitBreakerTest, AProbeThatIsNotSentGivesItsPlaceBack) {
  CircuitBreaker breaker({.probes = 1});
  Break(breaker, kStart);
  for (int i = 0; i < 5; ++i) {
    const Pass pass = breaker.Admit(kStart + 1s);
    ASSERT_TRUE(pass.probe()) << i;
    breaker.Finish(pass, Result::kNothing, {}, kStart + 1s);
  }
}

TEST(CircuitBreakerTest, ALateEndOfACallCountsForNothing) {
  CircuitBreaker breaker{CircuitBreaker::Config{}};
  std::vector<Pass> slow;
  for (int i = 0; i < 100; ++i) slow.push_back(breaker.Admit(kStart));
  Break(breaker, kStart);
  Instant now = kStart + 1s;
  for (int i = 0; i < 3; ++i) Call(breaker, Result::kGood, now);
  ASSERT_EQ(breaker.state(now), State::kClosed);
  for (const Pass& pass : slow) breaker.Finish(pass, Result::kBad, {}, now);
  EXPECT_EQ(breaker.state(now), State::kClosed);
}

// Isolation times of brpc_circuit_breaker_unittest: 10 ms at first, doubled
// when it breaks again at once, the first again after max + min of quiet.
TEST(CircuitBreakerTest, TheTimeSpentOpenDoublesAsThatOfBrpc) {
  CircuitBreaker breaker(
      {.open_for = 10ms, .open_for_ceiling = 200ms, .probes = 1});
  Instant now = kStart;
  const auto open_for = [&] {
    Break(breaker, now);
    const Duration time = breaker.opens_until() - now;
    now += time;
    Call(breaker, Result::kGood, now);
    EXPECT_EQ(breaker.state(now), State::kClosed);
    return time;
  };
  EXPECT_EQ(open_for(), 10ms);
  EXPECT_EQ(open_for(), 20ms);
  EXPECT_EQ(open_for(), 40ms);
  now += 211ms;
  EXPECT_EQ(open_for(), 10ms);
}

TEST(CircuitBreakerTest, DoublingStopsAtTheCeiling) {
  CircuitBreaker breaker({.open_for = 10ms, .open_for_ceiling = 11ms});
  Break(breaker, kStart);
  Instant now = kStart + 10ms;
  Call(breaker, Result::kBad, now);  // As a probe.
  EXPECT_EQ(breaker.opens_until() - now, 11ms);
}

TEST(CircuitBreakerTest, AHandfulThatDidNotReachItOpensItWhateverWasBefore) {
  CircuitBreaker breaker{CircuitBreaker::Config{}};
  for (int i = 0; i < 4000; ++i) Call(breaker, Result::kGood, kStart);
  for (int i = 0; i < 4; ++i) Call(breaker, Result::kUnreached, kStart);
  Call(breaker, Result::kGood, kStart);
  for (int i = 0; i < 4; ++i) Call(breaker, Result::kUnreached, kStart);
  EXPECT_EQ(breaker.state(kStart), State::kClosed);
  Call(breaker, Result::kUnreached, kStart);
  EXPECT_EQ(breaker.state(kStart), State::kOpen);
}

TEST(CircuitBreakerTest, ConfigsOutOfRangeAreNamed) {
  EXPECT_EQ(CircuitBreaker::Config{.unreached = 0}.Check()->message,
            "`breaker.unreached` must be above 0");
  EXPECT_FALSE(CircuitBreaker::Config{}.Check());
  EXPECT_TRUE(CircuitBreaker::Config{.failure_ratio = 0}.Check());
  EXPECT_TRUE(CircuitBreaker::Config{.probes = 17}.Check());
  EXPECT_EQ(CircuitBreaker::Config{.open_for = 1min}.Check()->message,
            "0s < `breaker.open_for` <= `breaker.open_for_ceiling` must hold");
}

}  // namespace
}  // namespace weir
