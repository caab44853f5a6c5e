// Conformance of the Netflix limits: numbers that their own tests assert, and
// trajectories that the originals gave when run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "samples_test.h"
#include "weir/rivals/averages.h"
#include "weir/rivals/fixed_limit.h"
#include "weir/rivals/netflix_aimd.h"
#include "weir/rivals/netflix_gradient.h"
#include "weir/rivals/netflix_gradient2.h"
#include "weir/rivals/netflix_vegas.h"
#include "weir/rivals/netflix_windowed.h"

namespace weir::rivals {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;

NetflixAimd MakeAimd(int initial, int floor = 0, int ceiling = 200) {
  return NetflixAimd({.initial = initial, .floor = floor, .ceiling = ceiling});
}

TEST(NetflixAimdTest, StartsAtItsInitialLimit) {
  EXPECT_EQ(MakeAimd(10).Limit(kStart), 10);
}

TEST(NetflixAimdTest, GrowsByOneWhenHalfIsUsed) {
  NetflixAimd law = MakeAimd(20);
  EXPECT_THAT(Feed(law, 1, 1ms, 10), ElementsAre(21));
}

TEST(NetflixAimdTest, FallsByATenthOnADrop) {
  NetflixAimd law = MakeAimd(30);
  EXPECT_THAT(Feed(law, 1, 0ms, 0, Outcome::kTimedOut), ElementsAre(27));
}

TEST(NetflixAimdTest, StopsAtItsCeiling) {
  NetflixAimd law = MakeAimd(21, 0, 21);
  EXPECT_THAT(Feed(law, 1, 1ms, 10), ElementsAre(21));
}

TEST(NetflixAimdTest, FollowsTheOriginalsTrajectory) {
  NetflixAimd law({});
  EXPECT_THAT(Feed(law, 5, 10ms), ElementsAre(21, 22, 23, 24, 25));
  EXPECT_THAT(Feed(law, 1, 10ms, 25, Outcome::kTimedOut), ElementsAre(22));
  EXPECT_THAT(Feed(law, 5, 10ms), ElementsAre(23, 24, 25, 26, 27));
  EXPECT_THAT(Feed(law, 1, 6s), ElementsAre(24));
  EXPECT_THAT(Feed(law, 3, 10ms, 5), ElementsAre(24, 24, 24));
}

TEST(NetflixVegasTest, GrowsByTheLogOfALargeLimit) {
  NetflixVegas law({.initial = 10'000, .ceiling = 20'000});
  EXPECT_THAT(Feed(law, 1, 10s, 5000), ElementsAre(10'000));
  EXPECT_THAT(Feed(law, 1, 10s, 6000), ElementsAre(10'024));
}

NetflixVegas MakeSmallVegas() {
  return NetflixVegas({.initial = 10, .ceiling = 20});
}

TEST(NetflixVegasTest, GrowsWhileNothingQueues) {
  NetflixVegas law = MakeSmallVegas();
  EXPECT_THAT(Feed(law, 1, 10ms, 10), ElementsAre(10));
  EXPECT_THAT(Feed(law, 1, 10ms, 11), ElementsAre(16));
}

TEST(NetflixVegasTest, FallsWhenLatencyIsFiveTimesTheLeast) {
  NetflixVegas law = MakeSmallVegas();
  EXPECT_THAT(Feed(law, 1, 10ms, 10), ElementsAre(10));
  EXPECT_THAT(Feed(law, 1, 50ms, 11), ElementsAre(9));
}

TEST(NetflixVegasTest, HoldsBetweenItsThresholds) {
  NetflixVegas law = MakeSmallVegas();
  EXPECT_THAT(Feed(law, 1, 10ms, 10), ElementsAre(10));
  EXPECT_THAT(Feed(law, 1, 14ms, 14), ElementsAre(10));
}

TEST(NetflixVegasTest, HalvesWithSmoothing) {
  NetflixVegas law({.initial = 100,
                    .ceiling = 200,
                    .smoothing = 0.5,
                    .decrease_ratio = 0.5});
  EXPECT_THAT(Feed(law, 1, 10ms, 100), ElementsAre(100));
  EXPECT_THAT(Feed(law, 2, 20ms, 100), ElementsAre(75, 56));
}

TEST(NetflixVegasTest, HalvesWithoutSmoothing) {
  NetflixVegas law({.initial = 100, .ceiling = 200, .decrease_ratio = 0.5});
  EXPECT_THAT(Feed(law, 1, 10ms, 100), ElementsAre(100));
  EXPECT_THAT(Feed(law, 2, 20ms, 100), ElementsAre(50, 25));
}

TEST(NetflixVegasTest, FollowsTheOriginalsTrajectoryFromTwenty) {
  NetflixVegas law({});
  EXPECT_THAT(Feed(law, 16, 10ms),
              ElementsAre(20, 26, 32, 38, 44, 50, 56, 62, 68, 74, 80, 86, 92,
                          98, 104, 116));
  EXPECT_THAT(Feed(law, 15, 20ms),
              ElementsAre(114, 112, 110, 108, 106, 104, 102, 100, 98, 97, 96,
                          95, 94, 93, 92));
  EXPECT_THAT(Feed(law, 10, 12ms),
              ElementsAre(91, 90, 89, 88, 87, 86, 85, 84, 83, 82));
  EXPECT_THAT(Feed(law, 3, 10500us, -1, Outcome::kTimedOut),
              ElementsAre(81, 80, 79));
}

TEST(NetflixVegasTest, FollowsTheOriginalsTrajectoryFromAHundred) {
  NetflixVegas law({.initial = 100});
  EXPECT_THAT(Feed(law, 1, 10ms), ElementsAre(100));
  EXPECT_THAT(Feed(law, 10, 10100us),
              ElementsAre(112, 124, 136, 148, 160, 172, 184, 196, 208, 210));
  EXPECT_THAT(Feed(law, 10, 15ms),
              ElementsAre(208, 206, 204, 202, 200, 198, 196, 194, 192, 190));
}

// Goal: the probe is due after between 15 and 30 times the limit samples, and
// takes the latency of that moment for the base, which lets the limit grow
// under load: the drift.
TEST(NetflixVegasTest, ProbesStoreALoadedLatency) {
  NetflixVegas law({.initial = 20, .ceiling = 20, .seed = 7});
  Feed(law, 1, 10ms);
  int samples = 1;
  for (; law.Limit(kStart) <= 20 && samples < 2000; ++samples) {
    const int before = law.Limit(kStart);
    Feed(law, 1, 100ms);
    if (law.Limit(kStart) > before) break;
  }
  // The limit fell to where it holds, then a base of 100 ms made it grow.
  EXPECT_GT(samples, 15);
  EXPECT_LE(samples, 30 * 20 + 1);
}

TEST(NetflixFunctionsTest, LogAndRootAreThoseOfTheOriginal) {
  EXPECT_EQ(Log10AtLeastOne(0), 1);
  EXPECT_EQ(Log10AtLeastOne(99), 1);
  EXPECT_EQ(Log10AtLeastOne(100), 2);
  EXPECT_EQ(Log10AtLeastOne(10'000), 4);
  EXPECT_EQ(SquareRootAtLeast(0, 4), 4);
  EXPECT_EQ(SquareRootAtLeast(999, 4), 31);
  EXPECT_EQ(SquareRootAtLeast(2500, 4), 50);
}

TEST(NetflixFunctionsTest, AverageIsPlainThenExponential) {
  WarmedAverage average(100, 10);
  for (int i = 0; i < 10; ++i) {
    EXPECT_NEAR(average.Add(10 + i), 10 + i * 0.5, 0.01);
  }
  EXPECT_NEAR(average.Add(100), 16.2, 0.1);
}

TEST(NetflixFunctionsTest, WindowAveragesDroppedSamplesToo) {
  AverageSampleWindow window;
  for (const int ns : {5000, 500, 10}) window.Add(Duration(ns), 1, false);
  EXPECT_EQ(window.mean(), 1836ns);
  EXPECT_FALSE(window.dropped());
  window.Add(5000ns, 1, true);
  EXPECT_EQ(window.mean(), 2627ns);
  EXPECT_TRUE(window.dropped());
}

TEST(NetflixGradientTest, GrowsByTheRootOfTheLimitWhileLatencyIsLow) {
  NetflixGradient law({.probe_interval = 0});
  EXPECT_THAT(Feed(law, 3, 10ms), ElementsAre(57, 64, 72));
}

// By the formula, from 50 with queue = max(4, floor(sqrt(limit))): a gradient
// of .5 gives 50 * .5 + 7 = 32, smoothed 46.4; then 42.96, 39.87, 37.08.
TEST(NetflixGradientTest, FallsSmoothlyWhenLatencyExceedsTheTolerance) {
  NetflixGradient law({.probe_interval = 0});
  Feed(law, 1, 10ms, 1);
  EXPECT_THAT(Feed(law, 4, 40ms), ElementsAre(46, 42, 39, 37));
}

TEST(NetflixGradientTest, HoldsWhileLessThanHalfIsUsed) {
  NetflixGradient law({});
  EXPECT_THAT(Feed(law, 10, 10ms, 24), ElementsAreArray(Repeated(50, 10)));
}

TEST(NetflixGradientTest, ProbesByDroppingToTheRootOfTheLimit) {
  NetflixGradient law({.seed = 3});
  const std::vector<int> limits = Feed(law, 2001, 10ms);
  // 1000 when at the ceiling; a probe falls to its root, 31.
  EXPECT_EQ(*std::min_element(limits.begin() + 1000, limits.end()), 31);
  EXPECT_EQ(*std::max_element(limits.begin(), limits.end()), 1000);
}

TEST(NetflixGradient2Test, FollowsTheOriginalsTrajectoryWithItsDefaults) {
  const std::vector<int> rising = {20, 21, 22, 23, 24, 24, 25, 26, 27, 28,
                                   28, 29, 30, 31, 32, 32, 33, 34, 35, 36,
                                   36, 37, 38, 39, 40, 40, 41, 42, 43, 44};
  std::vector<int> falling = {40, 37, 34, 31, 29, 27, 25, 23, 21};
  falling.resize(30, 20);
  NetflixGradient2 law({});
  EXPECT_THAT(Feed(law, 30, 10ms), ElementsAreArray(rising));
  EXPECT_THAT(Feed(law, 30, 100ms), ElementsAreArray(falling));
  EXPECT_THAT(Feed(law, 30, 10ms), ElementsAreArray(rising));
}

NetflixGradient2::Config WideGradient2() {
  return {.initial = 50, .floor = 1, .ceiling = 1000, .long_window = 100};
}

TEST(NetflixGradient2Test, FollowsTheOriginalsTrajectoryWithAWideRange) {
  NetflixGradient2 law(WideGradient2());
  EXPECT_THAT(Feed(law, 20, 10ms),
              ElementsAre(50, 51, 52, 53, 54, 54, 55, 56, 57, 58, 58, 59, 60,
                          61, 62, 62, 63, 64, 65, 66));
  EXPECT_THAT(Feed(law, 20, 25ms),
              ElementsAre(61, 58, 54, 51, 49, 47, 45, 43, 42, 41, 40, 39, 38,
                          38, 37, 37, 36, 36, 36, 36));
  EXPECT_THAT(Feed(law, 20, 10ms),
              ElementsAre(37, 38, 39, 39, 40, 41, 42, 43, 43, 44, 45, 46, 47,
                          47, 48, 49, 50, 51, 51, 52));
}

TEST(NetflixGradient2Test, FollowsTheOriginalsTrajectoryWithoutSmoothing) {
  NetflixGradient2::Config config = WideGradient2();
  config.smoothing = 1.0;
  config.tolerance = 2.0;
  NetflixGradient2 law(config);
  EXPECT_THAT(Feed(law, 20, 10ms),
              ElementsAre(54, 58, 62, 66, 70, 74, 78, 82, 86, 90, 94, 98, 102,
                          106, 110, 114, 118, 122, 126, 130));
  EXPECT_THAT(Feed(law, 20, 25ms),
              ElementsAre(111, 98, 89, 83, 80, 79, 79, 82, 85, 89, 93, 97, 101,
                          105, 109, 113, 117, 121, 125, 129));
  EXPECT_THAT(Feed(law, 20, 10ms),
              ElementsAre(133, 137, 141, 145, 149, 153, 157, 161, 165, 169, 173,
                          177, 181, 185, 189, 193, 197, 201, 205, 209));
}

TEST(NetflixGradient2Test, HoldsWhileLessThanHalfIsUsed) {
  NetflixGradient2 law({});
  EXPECT_THAT(Feed(law, 10, 10ms, 9), Each(20));
  EXPECT_THAT(Feed(law, 3, 10ms, 10), Each(20));
}

// The port in Go has no tolerance and lets the long average fall by a tenth.
TEST(NetflixGradient2Test, FollowsTheGoPortsTrajectory) {
  NetflixGradient2 law({.initial = 50,
                        .floor = 4,
                        .ceiling = 1000,
                        .long_window = 100,
                        .tolerance = 1.0,
                        .long_decay = 0.9});
  EXPECT_THAT(Feed(law, 1, 10ns, 1), ElementsAre(50));
  for (int i = 0; i < 25; ++i) {
    EXPECT_THAT(Feed(law, 1, Duration(10 * i), i), ElementsAre(50));
  }
  EXPECT_THAT(Feed(law, 1, 2500ns, 25, Outcome::kTimedOut), ElementsAre(45));
  EXPECT_THAT(Feed(law, 1, 10ns, 5), ElementsAre(45));
  for (int i = 0; i < 100; ++i) {
    Feed(law, 1, 1000ns, i, Outcome::kTimedOut);
  }
  EXPECT_EQ(law.Limit(kStart), 21);
  EXPECT_THAT(Feed(law, 100, 1ns, 1), Each(21));
}

Finish Sample(Instant started, Duration latency, int inflight,
              Outcome outcome = Outcome::kOk) {
  return {.now = started + latency,
          .latency = latency,
          .inflight_at_start = inflight,
          .outcome = outcome};
}

NetflixWindowed MakeShortWindows() {
  return NetflixWindowed(
      {.window_floor = 100ms,
       .window_ceiling = 200ms,
       .least_samples = 10,
       .least_latency = 10ns},
      MakeRival<NetflixAimd>(NetflixAimd::Config{.initial = 10, .floor = 1}));
}

TEST(NetflixWindowedTest, OneSampleTeachesNothing) {
  NetflixWindowed law = MakeShortWindows();
  law.Learn(Sample(Instant(), 10ns, 1));
  EXPECT_EQ(law.Limit(kStart), 10);
}

// The port's test feeds ten drops of 100 s with 15 inflight and expects 9, and
// forty successes of one each with 15 inflight and expects 16.  Both follow
// from its slip of asking whether the last *inflight* exceeds the window size:
// no window there ever holds ten samples.  The original hands on none of them.
TEST(NetflixWindowedTest, DoesNotTakeInflightForSamplesAsTheGoPortDoes) {
  NetflixWindowed drops = MakeShortWindows();
  drops.Learn(Sample(Instant(), 10ns, 1));
  for (int i = 0; i < 10; ++i) {
    drops.Learn(Sample(Instant(), 100s, 15, Outcome::kTimedOut));
  }
  EXPECT_EQ(drops.Limit(kStart), 10);

  NetflixWindowed successes = MakeShortWindows();
  for (int i = 0; i < 40; ++i) {
    successes.Learn(Sample(Instant(i * i * 100ms), 100ms + 10ns, 15));
  }
  EXPECT_EQ(successes.Limit(kStart), 10);
}

TEST(NetflixWindowedTest, HandsOnOneSampleForEachFullWindow) {
  NetflixWindowed law = MakeShortWindows();
  // The first sample ends the window before it; then a window lasts 100 ms,
  // ends with the first sample after that, and holds 11 samples.
  std::vector<int> limits;
  for (int i = 0; i < 34; ++i) {
    law.Learn(Sample(Instant(i * 10ms), 10ms, 15));
    limits.push_back(law.Limit(kStart));
  }
  std::vector<int> expected(11, 10);
  expected.resize(22, 11);
  expected.resize(33, 12);
  expected.resize(34, 13);
  EXPECT_THAT(limits, ElementsAreArray(expected));
}

TEST(NetflixWindowedTest, OneDropMakesTheWindowADrop) {
  NetflixWindowed law = MakeShortWindows();
  for (int i = 0; i < 12; ++i) {
    law.Learn(Sample(Instant(i * 10ms), 10ms, 15,
                     i == 5 ? Outcome::kTimedOut : Outcome::kOk));
  }
  EXPECT_EQ(law.Limit(kStart), 9);
}

TEST(FixedLimitTest, TenPassAndTheEleventhDoesNot) {
  FixedLimit law(10);
  int inflight = 0;
  while (inflight < law.Limit(kStart)) ++inflight;
  EXPECT_EQ(inflight, 10);
}

TEST(FrozenLimitTest, LearnsUntilItFreezesAndThenNoMore) {
  FrozenLimit law(MakeRival<NetflixAimd>(NetflixAimd::Config{}), 1s);
  law.Learn(Sample(kStart, 10ms, 20));
  EXPECT_EQ(law.Limit(kStart + 10ms), 21);
  law.Learn(Sample(kStart + 2s, 10ms, 21));
  EXPECT_EQ(law.Limit(kStart + 3s), 21);
}

}  // namespace
}  // namespace weir::rivals
