#include "oracle.h"

#include <gtest/gtest.h>

#include <map>

namespace weir::sim {
namespace {

using namespace std::chrono_literals;

class Sums final : public OracleListener {
 public:
  void OnIdeal(Duration slot, size_t cls, double work, double) override {
    if (slot < from || slot >= until) return;
    work_by_class[cls] += work;
    total += work;
  }
  void OnIdealLoss(Duration arrived, Duration since) override {
    ++losses;
    last_loss = arrived;
    waiting_since = since;
  }
  Duration from{};
  Duration until = Duration::max();
  std::map<size_t, double> work_by_class;
  double total = 0;
  int losses = 0;
  Duration last_loss{};
  Duration waiting_since{};
};

Need Cpu(Duration work) {
  Need need;
  need.latency = need.work = need.of[0] = work;
  need.used = 1;
  return need;
}

class OracleTest : public testing::Test {
 protected:
  // Plays until `end`, and on until all until then is reported.
  void Finish(Oracle& oracle, Duration end) {
    sums_.until = end;
    oracle.AdvanceTo(end + oracle.lag() + 10ms);
  }
  // One request of 10 ms each `gap`, classes in turn as listed.
  void Offer(Oracle& oracle, Duration from, Duration until, Duration gap,
             std::vector<size_t> classes) {
    size_t i = 0;
    for (Duration at = from; at < until; at += gap) {
      oracle.Arrive(classes[i++ % classes.size()], Cpu(10ms), 500ms, at);
    }
  }
  Sums sums_;
};

TEST_F(OracleTest, ServesAllThatFits) {
  Oracle oracle(sums_, 1, 1, 500ms, {});
  oracle.SetCapacity(0, 1, 0ms);
  Offer(oracle, 0ms, 10s, 11ms, {0});
  Finish(oracle, 11s);
  EXPECT_NEAR(sums_.total, 910 * .010, 1e-6);
  EXPECT_EQ(sums_.losses, 0);
}

TEST_F(OracleTest, OverloadedServesCapacityAndTheCriticalFirst) {
  Oracle oracle(sums_, 3, 1, 500ms, {});
  oracle.SetCapacity(0, 1, 0ms);
  // 2 C: a quarter each of class 0 and 1, half of class 2.
  Offer(oracle, 0ms, 20s, 5ms, {0, 2, 1, 2});
  Finish(oracle, 20s);
  EXPECT_NEAR(sums_.total, 20, .1);
  // Classes 0 and 1 together are just what can be done: at first they may fall
  // behind by up to a deadline, and class 2 gets that time.
  EXPECT_GT(sums_.work_by_class[0] + sums_.work_by_class[1], 19.4);
  EXPECT_NEAR(sums_.work_by_class[0], 10, .3);
  EXPECT_LT(sums_.work_by_class[2], .6);
  EXPECT_EQ(sums_.waiting_since, 0ms);
}

// A class that fits alone loses nothing though less critical work came first.
TEST_F(OracleTest, LateCriticalWorkTakesThePlaceOfEarlierWork) {
  Oracle oracle(sums_, 2, 1, 500ms, {});
  oracle.SetCapacity(0, 1, 0ms);
  Offer(oracle, 0ms, 10s, 5ms, {1});
  sums_ = Sums{};
  sums_.from = 10s;
  for (Duration at = 10s; at < 20s; at += 10ms) {
    oracle.Arrive(0, Cpu(10ms), 500ms, at);
    oracle.Arrive(1, Cpu(10ms), 500ms, at);
  }
  Finish(oracle, 20s);
  // It is made up for in the slots of what it replaces, up to a deadline ago.
  EXPECT_NEAR(sums_.work_by_class[0], 10, .6);
  EXPECT_NEAR(sums_.total, 10, .1);
}

TEST_F(OracleTest, ABurstThatFitsIntoTheDeadlineIsCarried) {
  Oracle oracle(sums_, 1, 1, 500ms, {});
  oracle.SetCapacity(0, 1, 0ms);
  for (int i = 0; i < 45; ++i) oracle.Arrive(0, Cpu(10ms), 500ms, 0ms);
  Finish(oracle, 2s);
  EXPECT_NEAR(sums_.total, .45, 1e-9);
  EXPECT_EQ(sums_.losses, 0);
}

TEST_F(OracleTest, APauseIsBridged) {
  Oracle oracle(sums_, 1, 1, 500ms, {});
  oracle.SetCapacity(0, 1, 0ms);
  Offer(oracle, 0ms, 2s, 15ms, {0});
  oracle.SetCapacity(0, 0, 2s);
  Offer(oracle, 2s, 2300ms, 15ms, {0});
  oracle.SetCapacity(0, 1, 2300ms);
  Offer(oracle, 2300ms, 10s, 15ms, {0});
  Finish(oracle, 11s);
  EXPECT_EQ(sums_.losses, 0);
  EXPECT_NEAR(sums_.total, 6.68, .03);
}

// What waits when a flood ends is not asked of anybody.
TEST_F(OracleTest, NoStaleWorkIsAskedForAfterAFlood) {
  Oracle oracle(sums_, 1, 1, 500ms, {});
  oracle.SetCapacity(0, 1, 0ms);
  Offer(oracle, 0ms, 10s, 2ms, {0});   // 5 C
  Offer(oracle, 10s, 20s, 20ms, {0});  // .5 C
  Finish(oracle, 25s);
  // 10 s of capacity, then half of it; stale work would add up to 0.25.
  EXPECT_NEAR(sums_.total, 10 + 5, .1);
}

// What comes after a flood is done as it comes; the ideal does not stand still
// for as long as it would have taken to do what waited.
TEST_F(OracleTest, AfterAFloodTheIdealIsWhatComes) {
  for (const Duration flood : {2ms, 9ms}) {
    for (Duration from = 9900ms; from < 16s; from += 100ms) {
      sums_ = Sums{};
      sums_.from = from;
      sums_.until = from + 100ms;
      Oracle oracle(sums_, 1, 1, 500ms, {});
      oracle.SetCapacity(0, 1, 0ms);
      Offer(oracle, 0ms, 10s, flood, {0});
      Offer(oracle, 10s, 20s, 12500us, {0});  // .8 C
      EXPECT_NEAR(sums_.total, from < 10s ? .1 : .08, .011)
          << "flood " << flood / 1ms << ", from " << from / 1ms;
    }
  }
}

// Another flood before what waited is done.
TEST_F(OracleTest, BetweenTwoFloodsTheIdealIsWhatComes) {
  sums_.from = 10s;
  sums_.until = 12s;
  Oracle oracle(sums_, 1, 1, 500ms, {});
  oracle.SetCapacity(0, 1, 0ms);
  Offer(oracle, 0ms, 10s, 5ms, {0});
  Offer(oracle, 10s, 12s, 12500us, {0});
  Offer(oracle, 12s, 20s, 5ms, {0});
  EXPECT_NEAR(sums_.total, .8 * 2, .03);
}

TEST_F(OracleTest, RefusingCostsWhatTheFormulaSays) {
  // C (1 - k m) / (1 - k) with k = .005, m = 20.
  Oracle oracle(sums_, 1, 1, 500ms, 50us);
  oracle.SetCapacity(0, 1, 0ms);
  Offer(oracle, 0ms, 20s, 500us, {0});
  Finish(oracle, 20s);
  EXPECT_NEAR(sums_.total / 20, (1 - .005 * 20) / (1 - .005), .02);
}

TEST_F(OracleTest, WhatCannotBeInTimeCountsForNothing) {
  Oracle oracle(sums_, 1, 1, 500ms, {});
  oracle.SetCapacity(0, 1, 0ms);
  EXPECT_FALSE(oracle.Arrive(0, Cpu(600ms), 500ms, 0ms));
  EXPECT_TRUE(oracle.Arrive(0, Cpu(400ms), 500ms, 0ms));
  Finish(oracle, 2s);
  EXPECT_NEAR(sums_.total, .4, 1e-9);
}

// A lock that is short holds up only those who need it.
TEST_F(OracleTest, AShortResourceHoldsUpOnlyWhoNeedsIt) {
  Oracle oracle(sums_, 2, 2, 500ms, {});
  oracle.SetCapacity(0, 10, 0ms);
  oracle.SetCapacity(1, 1, 0ms);
  for (Duration at = 0ms; at < 10s; at += 5ms) {
    Need locked = Cpu(5ms);
    locked.of[1] = 10ms;
    locked.work += 10ms;
    locked.latency += 10ms;
    locked.used = 3;
    oracle.Arrive(0, locked, 500ms, at);
    oracle.Arrive(1, Cpu(20ms), 500ms, at);
  }
  Finish(oracle, 10s);
  EXPECT_NEAR(sums_.work_by_class[0], 10 * 1.5, .8);  // 100/s of 15 ms.
  EXPECT_NEAR(sums_.work_by_class[1], 10 * 4., .2);   // All 200/s of 20 ms.
}

}  // namespace
}  // namespace weir::sim
