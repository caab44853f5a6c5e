// The laws that watch their own queue, against their published rules.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "samples_test.h"
#include "weir/rivals/adaptive_lifo.h"
#include "weir/rivals/breakwater.h"
#include "weir/rivals/dagor.h"
#include "weir/rivals/folly_codel.h"
#include "weir/rivals/pie.h"
#include "weir/rivals/rfc_codel.h"
#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

using testing::ElementsAre;

TEST(FollyCodelTest, SloughsAboveTwiceTheTargetAfterAnIntervalAboveIt) {
  FollyCodel law({});
  // The first of an interval always passes; none of it was below 5 ms.
  EXPECT_TRUE(law.Take({.now = kStart, .queue_delay = 50ms}));
  EXPECT_TRUE(law.Take({.now = kStart + 50ms, .queue_delay = 6ms}));
  EXPECT_TRUE(law.Take({.now = kStart + 101ms, .queue_delay = 50ms}));
  EXPECT_FALSE(law.Take({.now = kStart + 102ms, .queue_delay = 11ms}));
  EXPECT_TRUE(law.Take({.now = kStart + 103ms, .queue_delay = 10ms}));
}

TEST(FollyCodelTest, OneShortWaitEndsTheOverloadWithTheInterval) {
  FollyCodel law({});
  law.Take({.now = kStart, .queue_delay = 50ms});
  law.Take({.now = kStart + 101ms, .queue_delay = 50ms});
  EXPECT_TRUE(law.Take({.now = kStart + 150ms, .queue_delay = 5ms}));
  EXPECT_FALSE(law.Take({.now = kStart + 151ms, .queue_delay = 50ms}));
  law.Take({.now = kStart + 202ms, .queue_delay = 50ms});
  EXPECT_TRUE(law.Take({.now = kStart + 203ms, .queue_delay = 50ms}));
}

// The instants, in ms, at which it refuses, of requests that start each
// millisecond after `delay`.
std::vector<int> Refusals(RfcCodel& law, int from_ms, int to_ms,
                          Duration delay) {
  std::vector<int> refused;
  for (int ms = from_ms; ms < to_ms; ++ms) {
    if (!law.Take(
            {.now = kStart + ms * 1ms, .queue_delay = delay, .queued = 9})) {
      refused.push_back(ms);
    }
  }
  return refused;
}

// First at 100; then after 100 / sqrt(count): at 200, 270.7, 328.5, 378.5,
// 423.2, 464.0, each seen by the first request at or after it.
TEST(RfcCodelTest, RefusesEverFasterAfterOneInterval) {
  RfcCodel law({});
  EXPECT_THAT(Refusals(law, 0, 450, 20ms),
              ElementsAre(100, 200, 271, 329, 379, 424));
}

TEST(RfcCodelTest, StopsAtTheFirstDelayBelowItsTarget) {
  RfcCodel law({});
  ASSERT_THAT(Refusals(law, 0, 250, 20ms), ElementsAre(100, 200));
  EXPECT_THAT(Refusals(law, 250, 251, 4ms), ElementsAre());
  EXPECT_THAT(Refusals(law, 251, 351, 20ms), ElementsAre());
}

// Refused three, then calm for a moment: as that was under 16 intervals ago, it
// resumes with the count it had gained, 2, so 71 ms apart.
TEST(RfcCodelTest, ResumesAtItsFormerPace) {
  RfcCodel law({});
  ASSERT_THAT(Refusals(law, 0, 300, 20ms), ElementsAre(100, 200, 271));
  Refusals(law, 300, 301, 0ms);
  EXPECT_THAT(Refusals(law, 301, 500, 20ms), ElementsAre(401, 472));
}

TEST(RfcCodelTest, NeverRefusesTheOnlyRequest) {
  RfcCodel law({});
  for (int ms = 0; ms < 1000; ++ms) {
    ASSERT_TRUE(law.Take({.now = kStart + ms * 1ms, .queue_delay = 1s}));
  }
}

// By hand, target 15 ms, a steady delay of 115 ms: the first change is
// (.125 * .1 + 1.25 * .115) / 2048 = .0000763, the next two are .125 * .1,
// scaled by 1/128 while p < .0001 and by 1/32 while p < .001.
TEST(PieTest, DropRatioFollowsItsScaledSteps) {
  Pie law({});
  const auto update = [&law](Duration at) {
    law.Admit({.now = Instant(at), .queued = 100, .queue_delay = 115ms});
    return law.drop_ratio();
  };
  EXPECT_EQ(update(0ms), 0);
  EXPECT_NEAR(update(15ms), 0.0000763, 1e-7);
  EXPECT_NEAR(update(30ms), 0.0000763 + 0.0125 / 128, 1e-7);
  EXPECT_NEAR(update(45ms), 0.0000763 + 0.0125 / 128 + 0.0125 / 32, 1e-7);
  EXPECT_NEAR(update(46ms), 0.0000763 + 0.0125 / 128 + 0.0125 / 32, 1e-7);
}

TEST(PieTest, AllowsABurstAndRefusesAStandingQueue) {
  Pie law({});
  for (int ms = 0; ms < 150; ++ms) {
    EXPECT_TRUE(law.Admit({.now = Instant(ms * 1ms),
                           .queued = 100,
                           .queue_delay = 200ms,
                           .draw = 0}))
        << ms;
  }
  int refused = 0;
  SplitMix64 random(1);
  for (int ms = 150; ms < 10'000; ++ms) {
    if (!law.Admit({.now = Instant(ms * 1ms),
                    .queued = 100,
                    .queue_delay = 200ms,
                    .draw = random.Next()})) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 9000);
}

TEST(PieTest, LeavesAShortQueueAlone) {
  Pie law({});
  for (int ms = 0; ms < 10'000; ++ms) {
    ASSERT_TRUE(law.Admit({.now = Instant(ms * 1ms),
                           .queued = 2,
                           .queue_delay = 200ms,
                           .draw = 0}));
  }
}

TEST(AdaptiveLifoTest, PatienceShrinksWhenTheQueueWasNotEmptyForLong) {
  AdaptiveLifo law({});
  law.Admit({.now = kStart, .queued = 0});
  EXPECT_EQ(law.QueueOrder(kStart + 5ms), Order::kOldestFirst);
  EXPECT_TRUE(
      law.Take({.now = kStart + 90ms, .queue_delay = 90ms, .queued = 5}));
  EXPECT_EQ(law.QueueOrder(kStart + 90ms), Order::kNewestFirst);
  EXPECT_FALSE(
      law.Take({.now = kStart + 101ms, .queue_delay = 6ms, .queued = 5}));
  EXPECT_TRUE(
      law.Take({.now = kStart + 102ms, .queue_delay = 4ms, .queued = 0}));
  EXPECT_TRUE(
      law.Take({.now = kStart + 103ms, .queue_delay = 90ms, .queued = 5}));
}

// Windows of 1000 requests, evenly spread over classes and clients, all of
// which started after `queueing`; the number admitted in each.
std::vector<int> DagorWindows(Dagor& law, Instant& now, int windows,
                              Duration queueing) {
  std::vector<int> admitted;
  for (int window = 0; window < windows; ++window) {
    int passed = 0;
    for (int i = 0; i < 1000; ++i) {
      now += 1ms;
      if (law.Admit({.now = now,
                     .criticality = Criticality(i % kCriticalities),
                     .client = static_cast<uint64_t>(i / kCriticalities)})) {
        law.Take({.now = now, .queue_delay = queueing});
        ++passed;
      }
    }
    admitted.push_back(passed);
  }
  return admitted;
}

TEST(DagorTest, OverloadTakesATwentiethOfTheAdmittedEachWindow) {
  Dagor law({});
  Instant now = kStart;
  DagorWindows(law, now, 1, 0ms);
  const std::vector<int> admitted = DagorWindows(law, now, 20, 21ms);
  for (size_t i = 2; i < admitted.size(); ++i) {
    // A level holds about two of the 1000, so the walk overshoots by few.
    const double ratio = static_cast<double>(admitted[i]) / admitted[i - 1];
    EXPECT_LE(ratio, 0.96) << "window " << i;
    EXPECT_GE(ratio, 0.93) << "window " << i;
  }
}

TEST(DagorTest, RecoveryGivesOnePercentOfAllArrivalsBackEachWindow) {
  Dagor law({});
  Instant now = kStart;
  DagorWindows(law, now, 20, 21ms);
  const std::vector<int> admitted = DagorWindows(law, now, 20, 20ms);
  for (size_t i = 2; i < admitted.size(); ++i) {
    EXPECT_NEAR(admitted[i] - admitted[i - 1], 10, 6) << "window " << i;
  }
}

TEST(DagorTest, CutsTheLeastImportantFirst) {
  Dagor law({});
  Instant now = kStart;
  DagorWindows(law, now, 30, 21ms);
  ASSERT_LT(law.level(), Dagor::kLevels / 2);
  EXPECT_FALSE(law.Admit({.now = now, .criticality = Criticality::kSheddable}));
  EXPECT_FALSE(
      law.Admit({.now = now, .criticality = Criticality::kDeferrable}));
}

TEST(DagorTest, UsersAreShuffledEachHour) {
  const Arrival now{.now = kStart, .client = 12345};
  Arrival later = now;
  later.now += 1h;
  EXPECT_NE(Dagor::LevelOf(now), Dagor::LevelOf(later));
  EXPECT_EQ(Dagor::LevelOf(now), Dagor::LevelOf(now));
}

Breakwater::Config SmallBreakwater() {
  return {.target = 50ms, .round_trip = 1ms, .cores = 4, .clients = 100};
}

TEST(BreakwaterTest, GrowsByATenthOfACreditPerRoundTripBelowTheTarget) {
  Breakwater law(SmallBreakwater());
  for (int ms = 0; ms <= 100; ++ms) {
    law.Take({.now = kStart + ms * 1ms, .queue_delay = 10ms});
  }
  EXPECT_NEAR(law.credits(), 4 + 100 * 100 * 0.001, 1e-9);
}

TEST(BreakwaterTest, ShrinksInProportionToTheExcessAtMostByHalf) {
  Breakwater law(SmallBreakwater());
  law.Take({.now = kStart, .queue_delay = 0ms});
  law.Take({.now = kStart + 3s, .queue_delay = 0ms});
  const double before = law.credits();
  ASSERT_NEAR(before, 304, 1e-6);
  law.Take({.now = kStart + 3001ms, .queue_delay = 75ms});
  EXPECT_NEAR(law.credits(), before * 0.99, 1e-6);
  law.Take({.now = kStart + 3002ms, .queue_delay = 50s});
  EXPECT_NEAR(law.credits(), before * 0.99 / 2, 1e-6);
}

TEST(BreakwaterTest, RefusesWithoutCreditAndAfterTwiceTheTarget) {
  Breakwater law(SmallBreakwater());
  EXPECT_TRUE(law.Admit({.now = Instant(), .inflight = 2, .queued = 1}));
  EXPECT_FALSE(law.Admit({.now = Instant(), .inflight = 2, .queued = 2}));
  EXPECT_TRUE(law.Take({.now = Instant(), .queue_delay = 99ms}));
  EXPECT_FALSE(law.Take({.now = Instant(), .queue_delay = 100ms}));
}

}  // namespace
}  // namespace weir::rivals
