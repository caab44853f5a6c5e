// Laws that stand at the callers, but for the throttle of the SRE book.

#include <gtest/gtest.h>

#include "weir/rivals/envoy_retry_budget.h"
#include "weir/rivals/finagle_retry_budget.h"
#include "weir/rivals/gozero_breaker.h"
#include "weir/rivals/grpc_retry_throttle.h"
#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};

// gRPC core's retry_throttle_test: 4 tokens, 1.6 for a success.
TEST(GrpcRetryThrottleTest, AgreesWithTheTestOfGrpc) {
  GrpcRetryThrottle throttle({.max_milli = 4000, .ratio_milli = 1600});
  struct Step {
    bool good;
    int32_t left;
    bool may;
  };
  for (const Step& step : {Step{false, 3000, true},
                           {true, 4000, true},
                           {false, 3000, true},
                           {false, 2000, false},
                           {false, 1000, false},
                           {false, 0, false},
                           {false, 0, false},
                           {true, 1600, false},
                           {true, 3200, true},
                           {false, 2200, true},
                           {false, 1200, false},
                           {true, 2800, true},
                           {false, 1800, false},
                           {true, 3400, true},
                           {false, 2400, true}}) {
    throttle.Learn({.outcome = step.good ? Outcome::kOk : Outcome::kError});
    EXPECT_EQ(throttle.tokens_milli(), step.left);
    EXPECT_EQ(throttle.Admit({.attempt = 1}), step.may);
    EXPECT_TRUE(throttle.Admit({.attempt = 0}));
  }
}

TEST(FinagleRetryBudgetTest, AllowsAFifthOfTheRequestsAndTenASecond) {
  FinagleRetryBudget budget{FinagleRetryBudget::Config{}};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(budget.Admit({.now = kStart}));
  }
  int retries = 0;
  while (budget.Admit({.now = kStart, .attempt = 1})) ++retries;
  EXPECT_EQ(retries, 300);
  EXPECT_FALSE(budget.Admit({.now = kStart + 9s, .attempt = 1}));
  retries = 0;  // All of it is forgotten but the reserve.
  while (budget.Admit({.now = kStart + 10s, .attempt = 1})) ++retries;
  EXPECT_EQ(retries, 100);
}

TEST(EnvoyRetryBudgetTest, AllowsAFifthOfWhatIsInFlightAndAtLeastThree) {
  EnvoyRetryBudget budget{EnvoyRetryBudget::Config{}};
  int retries = 0;
  while (budget.Admit({.attempt = 1})) ++retries;
  EXPECT_EQ(retries, 3);
  for (int i = 0; i < 97; ++i) EXPECT_TRUE(budget.Admit({}));
  while (budget.Admit({.attempt = 1})) ++retries;
  EXPECT_EQ(retries, 24);  // 0.2 * (97 + 24) = 24.2.
  budget.Learn({.attempt = 1});
  EXPECT_TRUE(budget.Admit({.attempt = 1}));
}

// The cases of go-zero's googlebreaker_test.
TEST(GoZeroBreakerTest, AFewFailuresAreAdmittedAndManyAreNot) {
  GoZeroBreaker breaker{GoZeroBreaker::Config{}};
  for (int i = 0; i < 4; ++i) {
    breaker.Learn({.now = kStart, .outcome = Outcome::kError});
  }
  EXPECT_TRUE(breaker.Admit({.now = kStart, .draw = 0}));
  for (int i = 0; i < 10; ++i) breaker.Learn({.now = kStart});
  for (int i = 0; i < 100'000; ++i) {
    breaker.Learn({.now = kStart, .outcome = Outcome::kError});
  }
  EXPECT_FALSE(breaker.Admit({.now = kStart, .draw = 0}));
  EXPECT_FALSE(breaker.Admit({.now = kStart, .draw = uint64_t{1} << 63}));
}

TEST(GoZeroBreakerTest, OneIsForcedAfterASecondWithoutAPass) {
  GoZeroBreaker breaker{GoZeroBreaker::Config{}};
  for (int i = 0; i < 1000; ++i) {
    breaker.Learn({.now = kStart, .outcome = Outcome::kError});
  }
  EXPECT_TRUE(breaker.Admit({.now = kStart, .draw = ~uint64_t{0}}));
  EXPECT_FALSE(breaker.Admit({.now = kStart + 1s, .draw = 0}));
  EXPECT_TRUE(breaker.Admit({.now = kStart + 1001ms, .draw = 0}));
  EXPECT_FALSE(breaker.Admit({.now = kStart + 1001ms, .draw = 0}));
}

}  // namespace
}  // namespace weir::rivals
