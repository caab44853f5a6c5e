#include "weir/limit/limit_law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <variant>

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
      for (int i = 0; i < 80; ++i) now = Serve(law, now, servers, service);
      EXPECT_NEAR(law.capacity, servers / service, .05 * servers / service)
          << servers << " servers, " << service << " s";
      EXPECT_GE(law.slots(), servers) << servers;
      EXPECT_LE(law.slots(), std::max(3., 3.5 * servers)) << servers;
    }
  }
}

TEST(LimitLawTest, OneWorkerHasOnePlace) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 80; ++i) now = Serve(law, now, 1, .3);
  while (law.mode_name() != LawMode::kCruise) now = Serve(law, now, 1, .3);
  EXPECT_EQ(law.slots(), 1) << "of two each would take .6 s of .5";
}

TEST(LimitLawTest, StaysBetweenFloorAndCeilingWhateverItIsTold) {
  testing::Random random(5);
  for (int run = 0; run < 200; ++run) {
    const LimitConfig config{
        .workers = static_cast<int32_t>(
            random.Next() % 4 == 0 ? random.Next() % 40 : 0),
        .floor = 1 + static_cast<int32_t>(random.Next() % 20),
        .ceiling = 20 + static_cast<int32_t>(random.Next() % 50)};
    LimitLaw law = MakeLaw(config);
    Instant now = kStart;
    for (int step = 0; step < 300; ++step) {
      now += FromSeconds(random.Exponential(.02));
      LawInput input;
      input.completions = static_cast<int64_t>(random.Next() % 200);
      input.late =
          static_cast<int64_t>(random.Next()) % (input.completions + 1);
      input.late = std::max<int64_t>(0, input.late);
      input.lost = static_cast<int64_t>(random.Next() % 100);
      const double latency = random.Exponential(
          std::pow(10., -static_cast<double>(random.Next() % 6)));
      input.latency_sum = latency * static_cast<double>(input.completions);
      input.latency_sq_sum = input.latency_sum * latency * 3;
      input.bound = random.Next() % 2 == 0;
      input.calm = static_cast<int64_t>(random.Next() % 3);
      input.calm_sum = latency * static_cast<double>(input.calm);
      input.arrivals = static_cast<int64_t>(random.Next() % 100);
      input.refused = static_cast<int64_t>(random.Next() % 10);
      input.budgets = input.arrivals;
      input.budget_sum =
          static_cast<double>(input.arrivals) * random.Exponential(.5);
      input.inflight = static_cast<int64_t>(random.Next() % 100);
      input.queued = static_cast<int64_t>(random.Next() % 1000);
      input.queue_formed = random.Next() % 8 == 0;
      input.queue_empty = random.Next() % 8 == 0;
      // Workers do not all have the same now.
      const bool late = random.Next() % 4 == 0;
      const uint64_t round = law.round;
      const Instant from = law.round_from;
      law.Step(input, late ? now - FromSeconds(random.Exponential(.02)) : now);
      ASSERT_GE(law.slots(), config.floor);
      ASSERT_LE(law.slots(), config.ceiling);
      ASSERT_TRUE(std::isfinite(law.capacity) && law.capacity >= 0);
      ASSERT_TRUE(std::isfinite(law.base_latency) && law.base_latency >= 0);
      ASSERT_TRUE(std::isfinite(law.variation) && law.variation >= 0);
      ASSERT_TRUE(std::isfinite(law.demand.excess) && law.demand.excess >= 0);
      ASSERT_GE(law.queue_target(), 4);
      ASSERT_GE(law.waiting_bound(now), 4);
      ASSERT_GE(law.round, round);
      ASSERT_GE(law.round_from, from);
      if (law.mode_name() == LawMode::kSearch) {
        ASSERT_GE(law.waiting_bound(now), law.queue_target());
      }
    }
  }
}

TEST(LimitLawTest, FollowsCapacityThatHalvesAndDoubles) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 16, .01);
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 8, .01);
  EXPECT_NEAR(law.capacity, 800, 40);
  EXPECT_NEAR(static_cast<double>(law.slots()), 12, 6);
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 16, .01);
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

// A law that cruises before 16 servers of 10 ms.
LimitLaw Cruising(Instant& now) {
  LimitLaw law = MakeLaw();
  now = kStart;
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 16, .01);
  while (law.mode_name() != LawMode::kCruise) now = Serve(law, now, 16, .01);
  return law;
}

TEST(LimitLawTest, WhatWasProvedIsAskedAgainAfterACalm) {
  Instant now{};
  LimitLaw law = Cruising(now);
  const int64_t before = law.slots();
  for (int i = 0; i < 1000; ++i) {
    now = Serve(law, now, 16, .01, /*bound=*/false, /*demand=*/50);
  }
  EXPECT_EQ(law.mode_name(), LawMode::kSearch);
  EXPECT_FALSE(law.demand.overloaded);
  EXPECT_GE(law.slots(), before);
  EXPECT_GE(law.waiting_bound(now), 1000) << "nothing is refused meanwhile";
}

// What a quiet night teaches: one quick request a second.  Then each takes 200
// times as long, and two hundred come.
TEST(LimitLawTest, AQuietNightLimitsNobodyInTheMorning) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 30; ++i) {
    now = Serve(law, now, 50, .001, /*bound=*/false, /*demand=*/1);
  }
  ASSERT_GE(law.slots(), 8);
  const Instant morning = now;
  while (law.slots() < 50 && now < morning + seconds(60)) {
    now = Serve(law, now, 50, .2);
  }
  EXPECT_LE(now, morning + seconds(3));
}

TEST(LimitLawTest, AnUnusedLimitShrinksToWhatIsHarmless) {
  LimitLaw law = MakeLaw({.floor = 1, .ceiling = 100'000});
  law.limit = 2500;  // Found while a dependency hung.
  Instant now = kStart;
  for (int i = 0; i < 200; ++i) {
    now = Serve(law, now, 16, .01, /*bound=*/false, /*demand=*/700);
    LawInput input;
    input.inflight = 7;
    law.Step(input, now);
  }
  for (int i = 0; i < 12; ++i) {
    now += seconds(11);
    LawInput input;
    input.inflight = 7;
    law.Step(input, now);
  }
  EXPECT_LE(law.slots(), 700 * .5 / 2);
  EXPECT_GE(law.slots(), 14);
}

TEST(LimitLawTest, NothingAnsweredYetRaisesTheLimitByTheClock) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 30; ++i) {
    now += milliseconds(5);
    LawInput input;
    input.bound = true;
    input.queued = 100;
    input.inflight = law.slots();
    law.Step(input, now);
  }
  EXPECT_GE(law.slots(), 64);
  // But not once answers have come: what is silent then hangs or stands still.
  LawInput input;
  input.bound = true;
  input.queued = 100;
  input.completions = 1;
  input.latency_sum = .1;
  input.latency_sq_sum = .01;
  now += milliseconds(5);
  law.Step(input, now);
  const int64_t before = law.slots();
  for (int i = 0; i < 100; ++i) {
    now += milliseconds(5);
    law.Step(input, now);
  }
  EXPECT_EQ(law.slots(), before);
}

TEST(LimitLawTest, NobodyWhoWaitsRaisesNothing) {
  LimitLaw law = MakeLaw();
  for (int i = 1; i < 30; ++i) {
    LawInput input;
    input.bound = true;
    law.Step(input, kStart + i * milliseconds(5));
  }
  EXPECT_EQ(law.slots(), 8);
}

// Quick answers say nothing of those that take long and hold the places.
TEST(LimitLawTest, AnswersThatDoNotAccountForThePlacesProveNothing) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 20; ++i) {
    now += milliseconds(100);
    LawInput input;
    input.bound = true;
    input.queued = 10;
    input.inflight = law.slots();
    input.completions = law.round_size() + 10;
    input.latency_sum = static_cast<double>(input.completions) * 1e-4;
    input.latency_sq_sum = input.latency_sum * 1e-4;
    law.Step(input, now);
    ASSERT_EQ(law.mode_name(), LawMode::kSearch) << i;
  }
}

TEST(LimitLawTest, KnownWorkersNeedNoSearch) {
  LimitLaw law = MakeLaw({.workers = 20});
  EXPECT_EQ(law.slots(), 22);
  Instant now = kStart;
  for (int i = 0; i < 30; ++i) now = Serve(law, now, 20, .02);
  while (law.mode_name() != LawMode::kKnown) now = Serve(law, now, 20, .02);
  EXPECT_EQ(law.slots(), 22);
  EXPECT_NEAR(law.capacity, 1000, 50);
}

TEST(LimitLawTest, OneKnownWorkerHasOnePlaceAndTwoHaveTwo) {
  EXPECT_EQ(MakeLaw({.workers = 1}).slots(), 1);
  EXPECT_EQ(MakeLaw({.workers = 2}).slots(), 2);
  EXPECT_EQ(MakeLaw({.workers = 10}).slots(), 11);
}

TEST(LimitLawTest, WhatThePolicySaysOfWorkersIsAskedAgainToo) {
  // Each request also waits 80 ms for somebody else.
  LimitLaw law = MakeLaw({.workers = 20});
  Instant now = kStart;
  for (int i = 0; i < 200; ++i) now = Serve(law, now, 100, .1);
  EXPECT_GE(law.slots(), 100);
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
  EXPECT_EQ(law.slots(), 4);
  law.Configure({}, now);
  EXPECT_EQ(law.mode_name(), LawMode::kSearch);
  EXPECT_EQ(law.capacity, capacity);
}

TEST(LimitLawTest, OnePoorRoundIsAPauseAndChangesNothing) {
  Instant now{};
  LimitLaw law = Cruising(now);
  const double capacity = law.capacity;
  const double base = law.base_latency;
  const int64_t slots = law.slots();
  now = Serve(law, now, 2, .01);
  EXPECT_NEAR(law.capacity, capacity, 1e-6 * capacity);
  EXPECT_EQ(law.base_latency, base);
  EXPECT_EQ(law.slots(), slots);
  EXPECT_EQ(law.mode_name(), LawMode::kCruise);
}

TEST(LimitLawTest, ASlowDependencyIsBelievedWhenThroughputFollowsTheLimit) {
  // 160 at a time would be needed; the limit is about 24.
  Instant now{};
  LimitLaw law = Cruising(now);
  for (int i = 0; i < 8; ++i) {
    now = Serve(law, now, 160, .1);
    EXPECT_NE(law.mode_name(), LawMode::kDrain);
  }
  EXPECT_NEAR(law.base_latency, .1, .02);
  EXPECT_GE(law.slots(), 160);
}

TEST(LimitLawTest, LostCapacityIsFoundAsThroughputFollowsNot) {
  Instant now{};
  LimitLaw law = Cruising(now);
  for (int i = 0; i < 40; ++i) now = Serve(law, now, 6, .01);
  EXPECT_NEAR(law.capacity, 600, 30);
  EXPECT_LE(law.slots(), 14);
  EXPECT_GE(law.slots(), 6);
}

// Steps a law whose service answers late, whatever the limit: `throughput` a
// second, each after `latency` s, `late` of them too late.
Instant Late(LimitLaw& law, Instant now, double throughput, double latency,
             bool late) {
  const Instant from = std::max(law.round_from, now);
  LawInput input;
  input.bound = true;
  input.queued = 100;
  input.inflight = law.slots();
  const double elapsed =
      std::max({latency * 2, 1.1, ToSeconds(law.round_end() - from),
                static_cast<double>(law.round_size() + 1) / throughput});
  input.completions = std::llround(throughput * elapsed);
  input.late = late ? input.completions : 0;
  input.latency_sum = latency * static_cast<double>(input.completions);
  input.latency_sq_sum = input.latency_sum * latency;
  now = from + FromSeconds(elapsed);
  law.Step(input, now);
  return now;
}

// Answers come too late since so many are at work: fewer do as much.
TEST(LimitLawTest, AnswersInVainLowerTheLimitWhenFewerDoAsMuch) {
  LimitLaw law = MakeLaw();
  law.limit = 300;
  Instant now = kStart;
  for (int i = 0; i < 20; ++i) {
    const double latency =
        std::max(.02, static_cast<double>(law.slots()) / 200);
    now = Late(law, now, std::min(200., static_cast<double>(law.slots()) / .02),
               latency, latency > .5);
  }
  EXPECT_LE(law.slots(), 100);
  EXPECT_GE(law.slots(), 4);
  EXPECT_NEAR(law.capacity, 200, 20);
}

// Each takes two seconds by itself, and callers give it half a second: fewer
// would only do less.
TEST(LimitLawTest, AnswersInVainLowerNothingWhenFewerDoLess) {
  LimitLaw law = MakeLaw();
  law.limit = 100;
  Instant now = kStart;
  int64_t most = 0;
  for (int i = 0; i < 40; ++i) {
    now = Late(law, now, static_cast<double>(law.slots()) / 2, 2, true);
    most = std::max(most, law.slots());
  }
  EXPECT_GE(most, 100);
  while (law.mode_name() == LawMode::kDrain) {
    now = Late(law, now, static_cast<double>(law.slots()) / 2, 2, true);
  }
  EXPECT_GE(law.slots(), 100);
}

TEST(LimitLawTest, LostAnswersAreNoThroughput) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 30; ++i) {
    now += seconds(2);
    LawInput input;
    input.bound = true;
    input.queued = 10;
    input.inflight = law.slots();
    input.lost = 1000;
    law.Step(input, now);
  }
  EXPECT_EQ(law.capacity, 0);
  EXPECT_EQ(law.slots(), 8) << "more timeouts a second are no growth";
}

TEST(LimitLawTest, NothingIsCalmInAnOverload) {
  Instant now{};
  LimitLaw law = Cruising(now);
  const double base = law.base_latency;
  LawInput input;
  input.calm = 100;
  input.calm_sum = 100 * .005;
  input.queued = 10;
  law.demand.overloaded = true;
  law.Step(input, now + milliseconds(1));
  EXPECT_EQ(law.base_latency, base);
  law.demand.overloaded = false;
  law.Step(input, now + milliseconds(2));
  EXPECT_LT(law.base_latency, base);
}

TEST(LimitLawTest, ABaseLatencyOfHalfTheBudgetIsLeftInService) {
  LimitLaw law = MakeLaw();  // With half a second for each.
  Instant now = kStart;
  for (int i = 0; i < 60; ++i) now = Serve(law, now, 64, .25);
  EXPECT_NEAR(law.capacity, 256, 13);
  EXPECT_GE(law.slots(), 64);
  // And the queueing that it allows in the service is a third of what is left,
  // but for the probe that asks whether more would help.
  while (law.mode_name() != LawMode::kCruise) now = Serve(law, now, 64, .25);
  EXPECT_LE(law.limit, law.capacity * (.25 + .25 / 3) * 1.05);
}

TEST(LimitLawTest, NothingIsShedForOverloadWhileTheSearchGoesOn) {
  LimitLaw law = MakeLaw();
  Instant now = kStart;
  for (int i = 0; i < 20; ++i) {
    now += milliseconds(5);
    LawInput input;
    input.bound = true;
    input.arrivals = 1000;
    input.queued = 500;
    law.Step(input, now);
    ASSERT_EQ(law.mode_name(), LawMode::kSearch);
    ASSERT_FALSE(law.demand.overloaded);
    ASSERT_GE(law.waiting_bound(now), 8192);
  }
}

}  // namespace
}  // namespace weir
