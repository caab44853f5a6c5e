#include "weir/client/retry_budget.h"

#include <gtest/gtest.h>

#include <deque>

#include "weir/client/backoff.h"
#include "weir/splitmix64.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};
constexpr Instant kNow = kStart;

// The sequence of gRPC core's retry_throttle_test: F is a failure and whether
// a retry may follow, S a success; then what is left.
TEST(RetryTokensTest, AgreesWithRetryThrottleTestOfGrpc) {
  RetryTokens tokens({.max_tokens = 4, .token_ratio = 1.6});
  struct Step {
    char event;
    double left;
    bool may = false;
  };
  const Step steps[] = {{'F', 3, true},    {'S', 4},          {'F', 3, true},
                        {'F', 2, false},   {'F', 1, false},   {'F', 0, false},
                        {'F', 0, false},   {'S', 1.6},        {'S', 3.2},
                        {'F', 2.2, true},  {'F', 1.2, false}, {'S', 2.8},
                        {'F', 1.8, false}, {'S', 3.4},        {'F', 2.4, true}};
  for (const Step& step : steps) {
    if (step.event == 'F') {
      EXPECT_EQ(tokens.OnFailure(kNow), step.may) << "left " << step.left;
    } else {
      tokens.OnSuccess();
    }
    EXPECT_DOUBLE_EQ(tokens.tokens(kNow), step.left);
  }
}

TEST(RetryTokensTest, AReplacementKeepsTheShareThatIsLeft) {
  RetryTokens tokens({.max_tokens = 4, .token_ratio = 1});
  EXPECT_TRUE(tokens.OnFailure(kNow));
  tokens.Replace({.max_tokens = 10, .token_ratio = 3});
  EXPECT_DOUBLE_EQ(tokens.tokens(kNow), 7.5);
  EXPECT_TRUE(tokens.OnFailure(kNow));
  EXPECT_TRUE(tokens.OnFailure(kNow));
  EXPECT_FALSE(tokens.OnFailure(kNow));
  EXPECT_FALSE(tokens.OnFailure(kNow));
  EXPECT_DOUBLE_EQ(tokens.tokens(kNow), 3.5);
  tokens.OnSuccess();
  EXPECT_TRUE(tokens.OnFailure(kNow));
  EXPECT_FALSE(tokens.OnFailure(kNow));
}

TEST(RetryTokensTest, DigitsPastTheThirdAreDropped) {
  RetryTokens tokens({.max_tokens = 10, .token_ratio = 0.5466});
  tokens.OnFailure(kNow);
  tokens.OnSuccess();
  EXPECT_DOUBLE_EQ(tokens.tokens(kNow), 9.546);
  EXPECT_TRUE((RetryTokens::Config{.token_ratio = 0.0009}.Check()));
  EXPECT_TRUE((RetryTokens::Config{.token_ratio = 0}.Check()));
  EXPECT_TRUE((RetryTokens::Config{.max_tokens = 0}.Check()));
  EXPECT_TRUE((RetryTokens::Config{.max_tokens = 1001}.Check()));
  EXPECT_FALSE((RetryTokens::Config{.max_tokens = 1000}.Check()));
}

TEST(RetryTokensTest, AHedgeCostsATokenAlthoughNothingFailed) {
  RetryTokens tokens({.max_tokens = 4, .token_ratio = 0.1});
  EXPECT_TRUE(tokens.SpendForHedge(kNow));
  EXPECT_TRUE(tokens.SpendForHedge(kNow));
  EXPECT_FALSE(tokens.SpendForHedge(kNow));
  EXPECT_DOUBLE_EQ(tokens.tokens(kNow), 2);
}

TEST(RetryTokensTest, AfterAMinuteWithoutFailuresAllAreBack) {
  RetryTokens tokens{RetryTokens::Config{}};
  for (int i = 0; i < 100; ++i) tokens.OnFailure(kNow);
  EXPECT_DOUBLE_EQ(tokens.tokens(kNow), 0);
  EXPECT_DOUBLE_EQ(tokens.tokens(kNow + 15s), 2.5);
  EXPECT_FALSE(tokens.allows(kNow + 30s));
  EXPECT_TRUE(tokens.allows(kNow + 31s));
  EXPECT_DOUBLE_EQ(tokens.tokens(kNow + 1h), 10);
  EXPECT_TRUE(tokens.OnFailure(kNow + 1h));
  EXPECT_DOUBLE_EQ(tokens.tokens(kNow + 1h), 9);
}

// Goal: what time brings does not let a backend that goes on failing be tried
// more often.
TEST(RetryTokensTest, WhoFailsOncePerSecondGetsNoRetries) {
  RetryTokens tokens{RetryTokens::Config{}};
  int retries = 0;
  for (int i = 0; i < 3600; ++i) retries += tokens.OnFailure(kNow + i * 1s);
  EXPECT_LE(retries, 5);
}

TEST(RetryTokensTest, FailuresOftenerThanTheClockOfTokensLoseNoTime) {
  RetryTokens tokens{RetryTokens::Config{}};
  for (int i = 0; i < 10; ++i) tokens.OnFailure(kNow);
  for (int i = 1; i <= 60'000; ++i) {
    (void)tokens.allows(kNow + i * 1ms);
    if (i % 20'000 == 0) tokens.OnFailure(kNow + i * 1ms);
  }
  EXPECT_NEAR(tokens.tokens(kNow + 1min), 7, 0.01);
}

// Goal: never more than the allowance in any window, and never less than asked
// for below it.
// Method: the model keeps the instants of the last minute in a list.
TEST(RetryAllowanceTest, AgreesWithAListOfInstants) {
  RetryAllowance allowance{RetryAllowance::Config{}};
  std::deque<Instant> taken;
  SplitMix64 draws(2);
  Instant now = kStart;
  for (int i = 0; i < 20'000; ++i) {
    now += Duration(draws.Next() % 1'500'000'000);
    while (!taken.empty() && now - taken.front() >= 1min) taken.pop_front();
    const bool expected = taken.size() < 60;
    if (expected) taken.push_back(now);
    ASSERT_EQ(allowance.Spend(now), expected) << "request " << i;
  }
}

TEST(RetryAllowanceTest, NoneMeansNone) {
  RetryAllowance allowance({.retries = 0});
  EXPECT_FALSE(allowance.Spend(kStart));
}

TEST(BackoffTest, PeriodsAreThreeSixTwelveSeconds) {
  const Backoff backoff{.first = 3s, .factor = 2, .ceiling = 12s};
  EXPECT_EQ(backoff.Period(0), 3s);
  EXPECT_EQ(backoff.Period(1), 6s);
  EXPECT_EQ(backoff.Period(2), 12s);
  EXPECT_EQ(backoff.Period(3), 12s);
  EXPECT_EQ(backoff.Period(1000), 12s);
}

TEST(BackoffTest, AWaitIsUniformInItsPeriod) {
  const Backoff backoff{.first = 3s, .factor = 2, .ceiling = 12s};
  SplitMix64 draws(4);
  double sum = 0;
  double least = 6;
  double most = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double wait = ToSeconds(backoff.Wait(1, draws.Next()));
    sum += wait;
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_NEAR(sum / 10'000, 3, 0.05);
  EXPECT_LT(least, 0.01);
  EXPECT_GT(most, 5.99);
  EXPECT_LE(most, 6);
}

TEST(BackoffTest, NobodyComesBeforeTheyWereTold) {
  const Backoff backoff{.first = 100ms};
  EXPECT_EQ(backoff.WaitFor(2s, 0), 2s);
  EXPECT_GT(backoff.WaitFor(2s, ~uint64_t{0}), 2s + 99ms);
}

}  // namespace
}  // namespace weir
