#include "weir/limit/limit_law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "testing/simulated_service.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

LimitLaw MakeLaw(const LimitConfig& config = {}) {
  LimitLaw law;
  law.Reset(config, milliseconds(500), kStart);
  return law;
}

// Closes the open round as a service of `servers` places and `service` seconds
// would under backlog: throughput min(L, servers) / service, latency by Little.
// Returns the instant at which it closed.
Instant Serve(LimitLaw& law, Instant now, double servers, double service,
              bool bound = true, double demand = 1e9) {
  const double slots = static_cast<double>(law.slots());
  const double throughput =
      std::min({slots, servers, demand * service}) / service;
  const double latency = bound ? slots / throughput : service;
  const Instant from = std::max(law.round_from, now);
  double count = static_cast<double>(law.round_size());
  const double least = std::max(ToSeconds(law.round_end() - from), latency);
  count = std::max(count, std::ceil(least * throughput));
  now = from + FromSeconds(count / throughput) + Duration(1000);
  LawInput input;
  input.completions = static_cast<int64_t>(count);
  input.latency_sum = count * latency;
  input.latency_sq_sum = count * latency * latency * 2;  // Exponential.
  input.bound = bound;
  input.arrivals = std::llround(bound ? 2 * count : count);
  input.queued = bound ? 100 : 0;
  input.inflight = law.slots();
  law.Step(input, now);
  return now;
}

TEST(LimitLawTest, FindsTheLimitOfAnyServiceFromACold) {
  for (const double servers : {1., 4., 16., 64., 1000.}) {
    for (const double service : {.0001, .001, .01}) {
      LimitLaw law = MakeLaw();
      Instant now = kStart;
      for (int i = 0; i < 60; ++i) now = Serve(law, now, servers, service);
      EXPECT_NEAR(law.capacity, servers / service, .05 * servers / service)
          << servers << " servers, " << service << " s";
      EXPECT_GE(law.slots(), std::max(1., servers)) << servers;
      EXPECT_LE(law.slots(), std::max(3., 3.5 * servers)) << servers;
    }
  }
}

TEST(LimitLawTest, StaysBetweenFloorAndCeilingWhateverItIsTold) {
  testing::Random random(5);
  for (int run = 0; run < 200; ++run) {
    const LimitConfig config{
        .floor = 1 + static_cast<int32_t>(random.Next() % 20),
        .ceiling = 20 + static_cast<int32_t>(random.Next() % 50)};
    LimitLaw law = MakeLaw(config);
    Instant now = kStart;
    for (int step = 0; step < 300; ++step) {
      now += FromSeconds(random.Exponential(.02));
      LawInput input;
      input.completions = static_cast<int64_t>(random.Next() % 200);
      const double latency = random.Exponential(
          std::pow(10., -static_cast<double>(random.Next() % 6)));
      input.latency_sum = latency * static_cast<double>(input.completions);
      input.latency_sq_sum = input.latency_sum * latency * 3;
      input.bound = random.Next() % 2 == 0;
      input.calm = static_cast<int64_t>(random.Next() % 3);
      input.calm_sum = latency * static_cast<double>(input.calm);
      input.arrivals = static_cast<int64_t>(random.Next() % 100);
      input.budgets = input.arrivals;
      input.budget_sum =
          static_cast<double>(input.arrivals) * random.Exponential(.5);
      input.inflight = static_cast<int64_t>(random.Next() % 100);
      input.queued = static_cast<int64_t>(random.Next() % 1000);
      input.queue_formed = random.Next() % 8 == 0;
      input.queue_empty = random.Next() % 8 == 0;
      // Workers do not all have the same now.
      const bool late = random.Next() % 4 == 0;
      law.Step(input, late ? now - FromSeconds(random.Exponential(.02)) : now);
      ASSERT_GE(law.slots(), config.floor);
      ASSERT_LE(law.slots(), config.ceiling);
      ASSERT_TRUE(std::isfinite(law.capacity) && law.capacity >= 0);
      ASSERT_TRUE(std::isfinite(law.base_latency) && law.base_latency >= 0);
      ASSERT_TRUE(std::isfinite(law.variation) && law.variation >= 0);
      ASSERT_TRUE(std::isfinite(law.excess) && law.excess >= 0);
      ASSERT_GE(law.queue_target(), 4);
    }
  }
}

TEST(LimitLawTest, FollowsCapacityThatHalvesAndDoubles) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 16, .01);
  for (int i = 0; i < 40; ++i) now = Serve(law, now, 8, .01);
  EXPECT_NEAR(law.capacity, 800, 40);
  EXPECT_NEAR(static_cast<double>(law.slots()), 12, 6);
  for (int i = 0; i < 40; ++i) now = Serve(law, now, 16, .01);
  EXPECT_NEAR(law.capacity, 1600, 80);
  EXPECT_NEAR(static_cast<double>(law.slots()), 24, 8);
}

TEST(LimitLawTest, FollowsABaseLatencyThatGrowsTenfold) {
  // Throughput of a given limit falls to a tenth; taking that for lost
  // capacity would lower the limit further and further.
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 1000, .005, true, 3000);
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 1000, .05, true, 3000);
  EXPECT_GE(law.slots(), 150);
}

TEST(LimitLawTest, ACalmServiceKeepsItsLimit) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 16, .01);
  const int64_t before = law.slots();
  for (int i = 0; i < 1000; ++i) {
    now = Serve(law, now, 16, .01, /*bound=*/false, /*demand=*/50);
  }
  EXPECT_EQ(law.slots(), before);
  EXPECT_GE(law.capacity, 1500);
}

TEST(LimitLawTest, AnswersThatComeTooLateLowerTheLimitEvenWithoutAQueue) {
  LimitLaw law = MakeLaw({.floor = 1, .ceiling = 100'000});
  law.limit = 1000;  // Found before the service slowed down.
  law.mode = LawMode::kCruise;
  law.capacity = 1600;
  law.base_latency = .01;
  LawInput input;
  input.completions = 2000;
  input.latency_sum = 2000 * .6;  // Of a budget of .5 s.
  input.bound = false;
  law.Step(input, kStart + seconds(2));
  EXPECT_LE(law.slots(), 1600 * .5 / 3 + 1);
}

TEST(LimitLawTest, KnownWorkersNeedNoSearch) {
  LimitLaw law = MakeLaw({.workers = 20});
  EXPECT_EQ(law.slots(), 22);
  Instant now = kStart;
  for (int i = 0; i < 100; ++i) now = Serve(law, now, 20, .02);
  EXPECT_EQ(law.slots(), 22);
  EXPECT_NEAR(law.capacity, 1000, 50);
  EXPECT_NEAR(law.base_latency, .022, .001);
}

TEST(LimitLawTest, AChangedPolicyKeepsWhatWasLearned) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 16, .01);
  const double capacity = law.capacity;
  law.Configure({.floor = 1, .ceiling = 10}, now);
  EXPECT_EQ(law.slots(), 10);
  EXPECT_EQ(law.capacity, capacity);
  law.Configure({.workers = 4}, now);
  EXPECT_EQ(law.slots(), 5);
  law.Configure({}, now);
  EXPECT_EQ(law.mode, LawMode::kStart);
  EXPECT_EQ(law.capacity, capacity);
}

TEST(LimitLawTest, DemandIsRightFromTheFirstArrivalsOn) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 4; ++i) {
    now += milliseconds(10);
    LawInput input;
    input.arrivals = 16;
    law.Step(input, now);
  }
  EXPECT_NEAR(law.demand(), 1600, 1);
  for (int i = 0; i < 600; ++i) {
    now += milliseconds(10);
    LawInput input;
    input.arrivals = 4;
    law.Step(input, now);
  }
  EXPECT_NEAR(law.demand(), 400, 5);
}

// A law that cruises before 16 servers of 10 ms.
LimitLaw Cruising(Instant& now) {
  LimitLaw law = MakeLaw();
  now = kStart;
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 16, .01);
  while (law.mode != LawMode::kCruise) now = Serve(law, now, 16, .01);
  return law;
}

TEST(LimitLawTest, OnePoorRoundIsAPauseAndChangesNothing) {
  Instant now{};
  LimitLaw law = Cruising(now);
  const double capacity = law.capacity;
  const double base = law.base_latency;
  const int64_t slots = law.slots();
  for (int pause = 0; pause < 10; ++pause) {
    now = Serve(law, now, 2, .01);
    EXPECT_NEAR(law.capacity, capacity, 1e-6 * capacity);
    EXPECT_EQ(law.base_latency, base);
    EXPECT_EQ(law.slots(), slots);
    now = Serve(law, now, 16, .01);
  }
  EXPECT_FALSE(law.distrust);
}

TEST(LimitLawTest, ASlowDependencyIsBelievedWhenThroughputFollowsTheLimit) {
  // 160 at a time would be needed; the limit is about 24.
  Instant now{};
  LimitLaw law = Cruising(now);
  int drains = 0;
  for (int i = 0; i < 6; ++i) {
    now = Serve(law, now, 160, .1);
    drains += law.mode == LawMode::kDrainWait;
  }
  EXPECT_EQ(drains, 0);
  EXPECT_FALSE(law.distrust);
  EXPECT_NEAR(law.base_latency, .1, .01);
  EXPECT_GE(law.slots(), 160);
}

TEST(LimitLawTest, LostCapacityIsFoundByADrainAsThroughputFollowsNot) {
  Instant now{};
  LimitLaw law = Cruising(now);
  bool drained = false;
  for (int i = 0; i < 30; ++i) {
    now = Serve(law, now, 6, .01);
    drained = drained || law.mode == LawMode::kDrainWait;
  }
  EXPECT_TRUE(drained);
  EXPECT_NEAR(law.capacity, 600, 30);
  EXPECT_LE(law.slots(), 14);
}

TEST(LimitLawTest, ADrainGoesOnWhenWhatWaitedWasDroppedAsHopeless) {
  Instant now{};
  LimitLaw law = Cruising(now);
  while (law.mode != LawMode::kDrainWait) now = Serve(law, now, 6, .01);
  LawInput input;
  input.queue_empty = true;
  input.inflight = law.slots() + 1;
  law.Step(input, now + milliseconds(1));
  EXPECT_EQ(law.mode, LawMode::kDrainWait);
  input.inflight = 0;
  law.Step(input, now + milliseconds(2));
  EXPECT_EQ(law.mode, LawMode::kCruise);
}

TEST(LimitLawTest, NoDrainIsDueWhenAFloodBeginsAfterACalm) {
  Instant now{};
  LimitLaw law = Cruising(now);
  law.until_drain = -1000;
  law.overloaded = false;
  LawInput input;
  input.calm = 100;
  input.calm_sum = 100 * law.base_latency;
  law.Step(input, now);
  for (int i = 0; i < 100; ++i) {
    now = Serve(law, now, 16, .01);
    ASSERT_EQ(law.mode, LawMode::kCruise) << i;
  }
}

TEST(LimitLawTest, NothingIsCalmInAnOverload) {
  Instant now{};
  LimitLaw law = Cruising(now);
  const double base = law.base_latency;
  LawInput input;
  input.calm = 100;
  input.calm_sum = 100 * .005;
  law.overloaded = true;
  law.Step(input, now + milliseconds(1));
  EXPECT_EQ(law.base_latency, base);
  law.overloaded = false;
  law.Step(input, now + milliseconds(2));
  EXPECT_LT(law.base_latency, base);
}

// A limit far too large: all that waits is hopeless and dropped, the queue is
// empty, and no round would ever be bound.
TEST(LimitLawTest, AnswersThatAllComeTooLateAreAVerdictWithoutAQueue) {
  Instant now{};
  LimitLaw law = Cruising(now);
  law.limit = 300;
  law.capacity = 1600;
  law.base_latency = .2;
  law.proved = false;
  for (int i = 0; i < 20; ++i) {
    const double slots = static_cast<double>(law.slots());
    LawInput input;
    // Within the round it is known how late they are when the queue forms.
    input.completions = 1;
    input.latency_sum = slots / 400;
    law.Step(input, now);
    now = std::max(law.round_end(), now + FromSeconds(1));
    input.completions = std::max<int64_t>(law.round_size(), 400);
    input.latency_sum = static_cast<double>(input.completions) * slots / 400;
    input.latency_sq_sum = 2 * input.latency_sum * slots / 400;
    input.arrivals = 2 * input.completions;
    input.inflight = law.slots();
    input.queue_formed = i % 2 == 0;
    law.Step(input, now);
  }
  EXPECT_LE(law.limit / 400, .25);  // Half of the budget: not late any more.
}

TEST(LimitLawTest, ABaseLatencyOfHalfTheBudgetIsLeftInService) {
  LimitLaw law = MakeLaw();  // With half a second for each.
  Instant now = kStart;
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 64, .25);
  EXPECT_NEAR(law.capacity, 256, 13);
  EXPECT_GE(law.slots(), 64);
  // And the queueing that it allows in the service is a third of what is left.
  EXPECT_LE(law.limit, law.capacity * (.25 + .25 / 3) * 1.05);
}

TEST(LimitLawTest, ASlowDependencyIsBelievedInCalmToo) {
  Instant now{};
  LimitLaw law = Cruising(now);
  now = Serve(law, now, 160, .1);
  now = Serve(law, now, 160, .1);
  ASSERT_TRUE(law.distrust);
  // Demand is what the dependency held back, and not more.
  now = Serve(law, now, 160, .1, /*bound=*/false, 1000);
  EXPECT_TRUE(law.distrust) << "one round may be a burst of short ones";
  now = Serve(law, now, 160, .1, /*bound=*/false, 1000);
  EXPECT_FALSE(law.distrust);
  EXPECT_NEAR(law.base_latency, .1, .02);
}

// Steps the law every 5 ms with `demand` arrivals per second.
Instant Offer(LimitLaw& law, Instant now, double demand, Duration time,
              int64_t queued = 0) {
  for (const Instant end = now + time; now < end;) {
    now += milliseconds(5);
    LawInput input;
    input.bound = true;
    input.queued = queued;
    input.arrivals = std::llround(demand * .005);
    law.Step(input, now);
  }
  return now;
}

TEST(LimitLawTest, ABurstIsNoOverloadAndAFloodIsOneAtOnce) {
  Instant now{};
  LimitLaw law = Cruising(now);
  now = Offer(law, now, 400, seconds(2));
  ASSERT_FALSE(law.overloaded);
  now = Offer(law, now, 3200, milliseconds(80));
  now = Offer(law, now, 1000, milliseconds(500));
  EXPECT_FALSE(law.overloaded) << "128 more than could be served, once";
  now = Offer(law, now, 16000, milliseconds(40));
  EXPECT_TRUE(law.overloaded);
}

TEST(LimitLawTest, AnOverloadLastsUntilAllThatWasOfferedCouldBeServed) {
  Instant now{};
  LimitLaw law = Cruising(now);
  now = Offer(law, now, 3200, seconds(2));
  ASSERT_TRUE(law.overloaded);
  // Nothing waits, since the excess has been refused: no end yet.
  now = Offer(law, now, 1500, milliseconds(100));
  EXPECT_TRUE(law.overloaded);
  now = Offer(law, now, 800, seconds(1));
  EXPECT_FALSE(law.overloaded);
}

TEST(LimitLawTest, WhatWaitsIsOfferedWorkWhateverCapacityIsThought) {
  Instant now{};
  LimitLaw law = Cruising(now);
  now = Offer(law, now, 400, seconds(2));
  now = Offer(law, now, 1500, milliseconds(50), /*queued=*/500);
  EXPECT_TRUE(law.overloaded);
}

TEST(LimitLawTest, NothingIsShedForOverloadWhileTheSearchGoesOn) {
  const LimitLaw law = MakeLaw();
  EXPECT_TRUE(std::isinf(law.waiting_bound()));
}

}  // namespace
}  // namespace weir
