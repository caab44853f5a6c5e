#include "weir/limit/demand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

// 1600/s with half a second of patience each; 24 may wait in a lasting flood.
constexpr Demand::Supply kSupply{.capacity = 1600,
                                 .slack = .5,
                                 .target = 24,
                                 .proved = true,
                                 .held_back = true};

// Offers `rate` requests a second for `time`; what waits is what is beyond
// capacity, as long as there is room for it.
Instant Offer(Demand& demand, Instant now, double rate, Duration time,
              double& queue, Demand::Supply supply = kSupply) {
  for (const Instant end = now + time; now < end;) {
    now += milliseconds(5);
    const double room =
        demand.standing(now) ? supply.target : Demand::Room(supply);
    queue = std::clamp(queue + (rate - supply.capacity) * .005, 0., room);
    supply.held_back = queue > 0 || rate >= supply.capacity;
    demand.Follow(std::llround(rate * .005), std::llround(queue), supply, now);
  }
  return now;
}

Demand MakeDemand() {
  Demand demand;
  demand.Reset(/*budget=*/.5, kStart);
  return demand;
}

TEST(DemandTest, IsRightFromTheFirstArrivalsOn) {
  Demand demand = MakeDemand();
  Instant now = kStart;
  for (int i = 0; i < 4; ++i) demand.Follow(16, 0, {}, now += milliseconds(10));
  EXPECT_NEAR(demand.rate(), 1600, 1);
  for (int i = 0; i < 600; ++i) {
    demand.Follow(4, 0, {}, now += milliseconds(10));
  }
  EXPECT_NEAR(demand.rate(), 400, 5);
}

TEST(DemandTest, ABurstThatFitsIsNoOverload) {
  Demand demand = MakeDemand();
  double queue = 0;
  Instant now = Offer(demand, kStart, 400, seconds(2), queue);
  for (int burst = 0; burst < 10; ++burst) {
    now = Offer(demand, now, 11000, milliseconds(50), queue);
    EXPECT_FALSE(demand.overloaded) << "470 wait, 640 could";
    now = Offer(demand, now, 400, seconds(1), queue);
  }
}

TEST(DemandTest, MoreThanCanBeAnsweredIsAnOverloadAtOnce) {
  Demand demand = MakeDemand();
  double queue = 0;
  Instant now = Offer(demand, kStart, 400, seconds(2), queue);
  now = Offer(demand, now, 16000, milliseconds(60), queue);
  EXPECT_TRUE(demand.overloaded);
}

TEST(DemandTest, WhatWaitsKeepsItsPlaceUntilTheOverloadHasLasted) {
  Demand demand = MakeDemand();
  double queue = 0;
  Instant now = Offer(demand, kStart, 400, seconds(2), queue);
  now = Offer(demand, now, 16000, milliseconds(400), queue);
  EXPECT_TRUE(demand.overloaded);
  EXPECT_FALSE(demand.standing(now));
  now = Offer(demand, now, 16000, milliseconds(200), queue);
  EXPECT_TRUE(demand.standing(now));
}

TEST(DemandTest, ALittleMoreThanCapacityIsAnOverloadOnceItHasLasted) {
  Demand demand = MakeDemand();
  double queue = 0;
  Instant now = Offer(demand, kStart, 1600 * 1.2, milliseconds(450), queue);
  EXPECT_FALSE(demand.overloaded);
  now = Offer(demand, now, 1600 * 1.2, milliseconds(400), queue);
  EXPECT_TRUE(demand.overloaded);
}

TEST(DemandTest, AnOverloadLastsUntilWhatWasOfferedIsServed) {
  Demand demand = MakeDemand();
  double queue = 0;
  Instant now = Offer(demand, kStart, 3200, seconds(2), queue);
  ASSERT_TRUE(demand.standing(now));
  now = Offer(demand, now, 1500, milliseconds(100), queue);
  EXPECT_TRUE(demand.overloaded) << "the excess was refused, that is no end";
  now = Offer(demand, now, 800, seconds(1), queue);
  EXPECT_FALSE(demand.overloaded);
}

TEST(DemandTest, AnOverloadThatEndedByItselfIsGivenHalfAsLongAgainNextTime) {
  Demand demand = MakeDemand();
  double queue = 0;
  Instant now = Offer(demand, kStart, 6000, milliseconds(1500), queue);
  ASSERT_TRUE(demand.standing(now));
  now = Offer(demand, now, 100, seconds(1), queue);
  ASSERT_FALSE(demand.overloaded);
  now = Offer(demand, now, 6000, milliseconds(1500), queue);
  EXPECT_TRUE(demand.overloaded);
  EXPECT_FALSE(demand.standing(now)) << "it will end as the last one did";
}

TEST(DemandTest, AFloodThatDoesNotEndForgetsThatBurstsDid) {
  Demand demand = MakeDemand();
  double queue = 0;
  Instant now = Offer(demand, kStart, 6000, milliseconds(2000), queue);
  now = Offer(demand, now, 100, seconds(1), queue);
  EXPECT_GT(demand.patience, 1);
  now = Offer(demand, now, 6000, seconds(30), queue);
  now = Offer(demand, now, 100, seconds(1), queue);
  EXPECT_DOUBLE_EQ(demand.patience, .5);
}

TEST(DemandTest, WithoutAProofThereIsNoOverload) {
  Demand demand = MakeDemand();
  double queue = 0;
  Demand::Supply unproved = kSupply;
  unproved.proved = false;
  Offer(demand, kStart, 100'000, seconds(5), queue, unproved);
  EXPECT_FALSE(demand.overloaded);
}

TEST(DemandTest, AClockThatStepsBackChangesNothingThatMustHold) {
  Demand demand = MakeDemand();
  for (int i = 0; i < 1000; ++i) {
    const Instant now = kStart + milliseconds(i % 7 == 0 ? 5 * i - 100 : 5 * i);
    demand.Follow(i % 50, i % 300, kSupply, now);
    ASSERT_GE(demand.excess, 0);
    ASSERT_TRUE(std::isfinite(demand.rate()));
    ASSERT_GE(demand.patience, .5);
    ASSERT_LE(demand.patience, 8);
  }
}

}  // namespace
}  // namespace weir
