// The laws that steer a rate, a share or a level by what they measured,
// against their published rules: SEDA, Cinnamon, Bouncer, tRPC, userver.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "samples_test.h"
#include "weir/rivals/bouncer.h"
#include "weir/rivals/cinnamon.h"
#include "weir/rivals/seda.h"
#include "weir/rivals/trpc_high_percentile.h"
#include "weir/rivals/userver_linear.h"
#include "weir/rivals/userver_rps.h"
#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

void Respond(Seda& law, Instant now, int count, Duration latency) {
  for (int i = 0; i < count; ++i) law.Learn({.now = now, .latency = latency});
}

TEST(SedaTest, RateFallsByASixthWhileTheTailIsLate) {
  Seda law({.target = 100ms});
  // cur rises as 1 - .7^n of 200 ms: 60, 102 ms; the second is late.
  Respond(law, Instant(), 100, 200ms);
  EXPECT_DOUBLE_EQ(law.rate(), 5000);
  Respond(law, Instant(), 100, 200ms);
  EXPECT_DOUBLE_EQ(law.rate(), 5000 / 1.2);
}

TEST(SedaTest, RateGrowsByTwiceTheSlackWhileTheTailIsShort) {
  Seda law({.target = 100ms, .highest_rate = 1000});
  for (int i = 0; i < 5; ++i) Respond(law, Instant(), 100, 1s);
  // Short answers let cur fall below half the target in the end.
  double before = law.rate();
  for (int i = 0; i < 20; ++i) {
    before = law.rate();
    Respond(law, Instant(), 100, 0ms);
  }
  // By then cur is near 0: the error is -1, the step (1 - .1) * 2.
  EXPECT_NEAR(law.rate() - before, 1.8, 0.02);
}

TEST(SedaTest, TokensHoldTheRate) {
  Seda law({.highest_rate = 100});
  int admitted = 0;
  for (int ms = 0; ms < 10'000; ++ms) {
    if (law.Admit({.now = Instant(ms * 1ms)})) ++admitted;
  }
  EXPECT_NEAR(admitted, 1000, 11);
}

Arrival AtCinnamon(Instant now, int inflight, uint64_t client,
                   Criticality criticality) {
  return {.now = now,
          .inflight = inflight,
          .criticality = criticality,
          .client = client};
}

TEST(CinnamonTest, ShareFollowsItsGains) {
  Cinnamon law({});
  Instant now = kStart;
  // A period with 200 in, 100 started, and no free slot at a limit of 20: the
  // error is 1, the share .1 + 1.4 * .5.
  law.Admit(AtCinnamon(now, 0, 0, Criticality::kVital));
  for (int i = 0; i < 199; ++i) {
    law.Admit(AtCinnamon(now, 20, 0, Criticality::kVital));
  }
  for (int i = 0; i < 100; ++i) law.Take({.now = now});
  law.Admit(AtCinnamon(now + 500ms, 20, 0, Criticality::kVital));
  EXPECT_NEAR(law.refusal_ratio(), 0.8, 1e-9);
}

TEST(CinnamonTest, FreeSlotsCountAgainstAnyShare) {
  Cinnamon law({});
  law.Admit(AtCinnamon(kStart, 0, 0, Criticality::kVital));
  for (int i = 0; i < 19; ++i) {
    law.Admit(AtCinnamon(kStart, 0, 0, Criticality::kVital));
  }
  for (int i = 0; i < 10; ++i) law.Take({.now = kStart});
  // 20 in, 10 started, 20 slots free: an error of -1.
  law.Admit(AtCinnamon(kStart + 500ms, 0, 0, Criticality::kVital));
  EXPECT_EQ(law.refusal_ratio(), 0);
}

TEST(CinnamonTest, RefusesTheLeastImportantShare) {
  Cinnamon law({});
  SplitMix64 random(3);
  Instant now = kStart;
  int queued = 0;
  int refused[kCriticalities] = {};
  for (int ms = 0; ms < 60'000; ++ms) {
    now += 1ms;
    const size_t criticality = random.Next() % kCriticalities;
    const bool admitted =
        law.Admit(AtCinnamon(now, 20, random.Next(), Criticality(criticality)));
    if (admitted) ++queued;
    if (!admitted && ms >= 30'000) ++refused[criticality];
    // A full server, which starts three while four come.
    if (ms % 4 != 0 && queued > 0) {
      law.Take({.now = now});
      --queued;
    }
  }
  EXPECT_EQ(refused[0], 0);
  EXPECT_EQ(refused[1], 0);
  EXPECT_GT(refused[3], 6000);
  EXPECT_NEAR(refused[0] + refused[1] + refused[2] + refused[3], 7500, 1000);
}

TEST(CinnamonTest, RefusesAfterAThirdOfThePatience) {
  Cinnamon law({});
  EXPECT_TRUE(
      law.Take({.now = kStart, .queue_delay = 99ms, .patience = 300ms}));
  EXPECT_FALSE(
      law.Take({.now = kStart, .queue_delay = 101ms, .patience = 300ms}));
}

// p50 = p90 = 10 ms, ten processors: n queued predict n ms of waiting.
TEST(BouncerTest, RefusesWhenThePredictedPercentileMissesItsObjective) {
  Bouncer law(
      {.processors = 10, .slo_p50 = 50ms, .slo_p90 = 100ms, .allowance = 0});
  EXPECT_TRUE(law.Admit({.now = kStart, .queued = 1000}));
  for (int i = 0; i < 100; ++i) law.Learn({.now = kStart, .latency = 10ms});
  EXPECT_TRUE(law.Admit({.now = kStart, .queued = 40}));
  EXPECT_FALSE(law.Admit({.now = kStart, .queued = 41}));
}

TEST(BouncerTest, KindsAreJudgedApart) {
  Bouncer law(
      {.processors = 10, .slo_p50 = 50ms, .slo_p90 = 100ms, .allowance = 0});
  for (int i = 0; i < 65; ++i) {
    law.Learn({.now = kStart, .latency = 10ms, .kind = 0});
    law.Learn({.now = kStart, .latency = 60ms, .kind = 1});
  }
  EXPECT_TRUE(law.Admit({.now = kStart, .kind = 0}));
  EXPECT_FALSE(law.Admit({.now = kStart, .kind = 1}));
}

TEST(BouncerTest, AllowancePassesOneInAHundred) {
  Bouncer law({.slo_p50 = 1ms, .allowance = 0.01});
  law.Learn({.now = kStart, .latency = 10ms});
  SplitMix64 random(9);
  int admitted = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (law.Admit({.now = kStart, .draw = random.Next()})) ++admitted;
  }
  EXPECT_NEAR(admitted, 100, 40);
}

TEST(HighAverageTest, IsTheSmoothedMeanOfMaxima) {
  HighAverage high;
  for (int i = 0; i < 300; ++i) high.Add(i % 30 == 7 ? 100 : 1);
  // Groups of 30 each hold a 100, but for the first, partial ones.
  EXPECT_GT(high.Advance(), 9);
  double value = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 300; ++i) high.Add(i % 30 == 7 ? 100 : 1);
    value = high.Advance();
  }
  EXPECT_NEAR(value, 100, 1);
}

// Answers each millisecond, `batch` at a time, that waited for `delay` and
// then took 10 ms.
void Answer(TrpcHighPercentile& law, Instant& now, int ms, int batch,
            Duration delay) {
  for (int i = 0; i < ms; ++i) {
    now += 1ms;
    for (int j = 0; j < batch; ++j) {
      law.Learn({.now = now, .latency = 10ms, .queue_delay = delay});
    }
  }
}

TEST(TrpcHighPercentileTest, ActsAboveNineTenthsAndUntilHalfOfItsDelay) {
  TrpcHighPercentile law({});
  Instant now = kStart;
  Answer(law, now, 1000, 10, 13ms);
  EXPECT_FALSE(law.in_effect());
  Answer(law, now, 2000, 10, 20ms);
  EXPECT_TRUE(law.in_effect());
  Answer(law, now, 2000, 10, 9ms);
  EXPECT_TRUE(law.in_effect());
  Answer(law, now, 2000, 10, 7ms);
  EXPECT_FALSE(law.in_effect());
}

// 10 000/s of 40 ms are 400 by Little's law; at twice the expected delay the
// limit is that over 1.5.
TEST(TrpcHighPercentileTest, LimitIsLittlesLawOverTheShiftedQuotient) {
  TrpcHighPercentile law({});
  Instant now = kStart;
  Answer(law, now, 60'000, 10, 30ms);
  EXPECT_NEAR(law.most_inflight(), 400 / 1.5, 15);
  EXPECT_TRUE(law.Admit({.now = now, .inflight = law.most_inflight() - 1}));
  EXPECT_FALSE(law.Admit({.now = now, .inflight = 2 * law.most_inflight()}));
}

TEST(TrpcHighPercentileTest, OverloadRaisesTheCutAndSparesTheImportant) {
  TrpcHighPercentile law({});
  SplitMix64 random(21);
  Instant now = kStart;
  Answer(law, now, 20'000, 10, 30ms);
  int refused[kCriticalities] = {};
  for (int ms = 0; ms < 20'000; ++ms) {
    now += 1ms;
    for (int j = 0; j < 10; ++j) {
      const size_t criticality = random.Next() % kCriticalities;
      // The server is as full as half of the arrivals keep it.
      const bool admitted = law.Admit(
          {.now = now,
           .inflight = random.Next() % 2 == 0 ? 1 : law.most_inflight() + 1,
           .criticality = Criticality(criticality),
           .draw = random.Next()});
      if (!admitted && ms > 10'000) ++refused[criticality];
    }
    for (int j = 0; j < 5; ++j) {
      law.Learn({.now = now, .latency = 10ms, .queue_delay = 30ms});
    }
  }
  EXPECT_LT(refused[0], refused[1] + 1);
  EXPECT_LT(refused[0] * 5, refused[3]);
}

UserverRps::Second Pressed(int64_t load) {
  return {.overload_events = 100, .load = load};
}

UserverRps::Second Calm(int64_t load) { return {.load = load}; }

// userver needs more than three pressed seconds, then the first limit comes
// with the next one.
TEST(UserverRpsTest, LimitsAfterFourPressedSecondsToThreeQuarters) {
  UserverRps law({});
  for (int i = 0; i < 4; ++i) {
    law.Feed(Pressed(1000));
    EXPECT_FALSE(law.rate_limit()) << "second " << i;
  }
  EXPECT_TRUE(law.overloaded());
  law.Feed(Pressed(1000));
  EXPECT_EQ(law.rate_limit(), 750);
}

TEST(UserverRpsTest, FallsByTwoPercentAndRisesNoFasterThanItDoubles) {
  UserverRps law({});
  for (int i = 0; i < 5; ++i) law.Feed(Pressed(1000));
  law.Feed(Pressed(1000));
  EXPECT_EQ(law.rate_limit(), 735);
  law.Feed(Pressed(1000));
  EXPECT_EQ(law.rate_limit(), 720);
  // Calm: four seconds without a change, then 2^k, here above 2 %.
  for (int i = 0; i < 4; ++i) law.Feed(Calm(700));
  EXPECT_FALSE(law.overloaded());
  EXPECT_EQ(law.rate_limit(), 720);
  law.Feed(Calm(700));
  EXPECT_EQ(law.rate_limit(), 734);
  // A pressed second on the way up slows it to 2 more.
  law.Feed(Pressed(700));
  law.Feed(Calm(700));
  EXPECT_EQ(law.rate_limit(), 736);
}

TEST(UserverRpsTest, LiftsItsLimitAfterAThousandCalmSeconds) {
  UserverRps law({});
  for (int i = 0; i < 5; ++i) law.Feed(Pressed(1000));
  for (int i = 0; i < 1000; ++i) law.Feed(Calm(1000));
  EXPECT_TRUE(law.rate_limit());
  law.Feed(Calm(1000));
  EXPECT_FALSE(law.rate_limit());
}

TEST(UserverRpsTest, TwoLateStartsASecondAreNoise) {
  UserverRps law({});
  for (int i = 0; i < 100; ++i) {
    law.Feed({.overload_events = 2, .load = 1000});
  }
  EXPECT_FALSE(law.overloaded());
}

// Goal: the whole of it on a timeline: 1000 requests a second that start late
// are limited, and held to the limit, which only falls.
TEST(UserverRpsTest, HoldsTheRateOfAServerThatStartsLate) {
  UserverRps law({});
  int admitted = 0;
  for (int ms = 0; ms < 60'000; ++ms) {
    const Instant now = kStart + ms * 1ms;
    if (!law.Admit({.now = now})) continue;
    law.Take({.now = now, .queue_delay = 3ms});
    if (ms >= 59'000) ++admitted;
  }
  ASSERT_TRUE(law.rate_limit());
  EXPECT_LT(*law.rate_limit(), 300);
  EXPECT_NEAR(admitted, static_cast<double>(*law.rate_limit()), 10);
}

UserverLinear::Second Good(int64_t load) {
  return {.total = 1000, .mean_latency_ms = 10, .load = load};
}

UserverLinear::Second Failing(int64_t load) {
  return {.total = 1000, .failed = 60, .mean_latency_ms = 10, .load = load};
}

class UserverLinearTest : public testing::Test {
 protected:
  UserverLinearTest() {
    for (int i = 0; i < 33; ++i) law_.Feed(Good(100));
  }
  int Step(const UserverLinear::Second& second) {
    law_.Feed(second);
    return law_.Limit(kStart);
  }

  UserverLinear law_{{}};
};

TEST_F(UserverLinearTest, LimitsToThePresentLoadThenFallsByATwentieth) {
  EXPECT_EQ(law_.Limit(kStart), kNoLimit);
  EXPECT_EQ(Step(Failing(100)), 100);
  EXPECT_EQ(Step(Failing(100)), 95);
  EXPECT_EQ(Step(Failing(95)), 90);
}

TEST_F(UserverLinearTest, GrowsByOneAndIsLiftedAboveTheLoad) {
  Step(Failing(100));
  EXPECT_EQ(Step(Good(100)), 101);
  for (int limit = 102; limit <= 111; ++limit) {
    EXPECT_EQ(Step(Good(100)), limit);
  }
  EXPECT_EQ(Step(Good(100)), kNoLimit);
}

TEST_F(UserverLinearTest, ThreeSlowSecondsAreOverload) {
  UserverLinear::Second slow = Good(100);
  slow.mean_latency_ms = 101;  // Above 5 * max(20, 10).
  EXPECT_EQ(Step(slow), kNoLimit);
  EXPECT_EQ(Step(slow), kNoLimit);
  EXPECT_EQ(Step(slow), 100);
}

TEST_F(UserverLinearTest, NeverFallsBelowTen) {
  for (int i = 0; i < 200; ++i) Step(Failing(1));
  EXPECT_EQ(law_.Limit(kStart), 10);
}

TEST(UserverLinearWarmUpTest, ThirtySecondsChangeNothing) {
  UserverLinear law({});
  for (int i = 0; i < 30; ++i) law.Feed(Failing(100));
  EXPECT_EQ(law.Limit(kStart), kNoLimit);
  law.Feed(Failing(100));
  EXPECT_EQ(law.Limit(kStart), 100);
}

TEST(UserverLinearWarmUpTest, RareRequestsNeverLimit) {
  UserverLinear law({});
  for (int i = 0; i < 100; ++i) {
    law.Feed({.total = 9, .failed = 9, .mean_latency_ms = 1000, .load = 5});
  }
  EXPECT_EQ(law.Limit(kStart), kNoLimit);
}

}  // namespace
}  // namespace weir::rivals
