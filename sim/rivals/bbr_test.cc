// Conformance of the three that compare inflight with Little's law on the best
// of a window: aegis (Kratos), go-zero and Sentinel.

#include <gtest/gtest.h>

#include <vector>

#include "samples_test.h"
#include "weir/rivals/aegis_bbr.h"
#include "weir/rivals/gozero_shedder.h"
#include "weir/rivals/sentinel_system.h"

namespace weir::rivals {
namespace {

// Bucket i of ten gets `passes[i]` answers, whose latencies are 10 i + 1 to
// 10 i + 10 ms over and over.
template <typename Law>
void FillBuckets(Law& law, const std::vector<int>& passes) {
  for (size_t bucket = 0; bucket < passes.size(); ++bucket) {
    for (int i = 0; i < passes[bucket]; ++i) {
      const auto ms = static_cast<int>(bucket) * 10 + 1 + i % 10;
      law.Learn({.now = kStart + static_cast<int>(bucket) * 100ms,
                 .latency = ms * 1ms});
    }
  }
}

std::vector<int> Passes(int from) {
  std::vector<int> passes;
  for (int i = 0; i < 10; ++i) passes.push_back(from + 100 * i);
  return passes;
}

AegisBbr MakeAegis() { return AegisBbr({.window = 1s, .buckets = 10}); }

constexpr Instant kLastBucket = kStart + 900ms;

TEST(AegisBbrTest, BestIsTheFullestFinishedBucket) {
  AegisBbr law = MakeAegis();
  EXPECT_EQ(law.BestPasses(kStart), 1);
  FillBuckets(law, Passes(100));
  EXPECT_EQ(law.BestPasses(kStart + 1000ms), 1000);
}

TEST(AegisBbrTest, CurrentBucketNeverCounts) {
  AegisBbr law = MakeAegis();
  FillBuckets(law, {50});
  FillBuckets(law, {50});
  EXPECT_EQ(law.BestPasses(kStart), 1);
  EXPECT_EQ(law.BestPasses(kStart + 100ms), 100);
}

TEST(AegisBbrTest, LeastIsTheSmallestBucketMeanRoundedUp) {
  AegisBbr law = MakeAegis();
  EXPECT_EQ(law.LeastLatencyMs(kStart), 1);
  FillBuckets(law, Passes(100));
  EXPECT_EQ(law.LeastLatencyMs(kLastBucket), 6);
}

TEST(AegisBbrTest, MostInflightIsTheirProduct) {
  AegisBbr law = MakeAegis();
  FillBuckets(law, Passes(200));
  EXPECT_EQ(law.MostInflight(kLastBucket), 60);
}

TEST(AegisBbrTest, DropsAboveTheMostWhileHotAndASecondLonger) {
  AegisBbr law = MakeAegis();
  FillBuckets(law, Passes(100));
  ASSERT_EQ(law.MostInflight(kLastBucket), 54);

  law.set_cpu_permille(800);
  EXPECT_TRUE(law.Admit({.now = kLastBucket, .inflight = 50}));
  EXPECT_FALSE(law.Admit({.now = kLastBucket, .inflight = 80}));
  law.set_cpu_permille(700);
  EXPECT_FALSE(law.Admit({.now = kLastBucket, .inflight = 80}));
  EXPECT_TRUE(law.Admit({.now = kLastBucket + 2s, .inflight = 80}));
}

TEST(AegisBbrTest, ColdServerLetsOneAtATimeRunWhenHot) {
  AegisBbr law({});
  law.set_cpu_permille(1000);
  EXPECT_EQ(law.MostInflight(kStart), 0);
  EXPECT_TRUE(law.Admit({.now = kStart, .inflight = 1}));
  EXPECT_FALSE(law.Admit({.now = kStart, .inflight = 2}));
}

// A step to 100 % crosses 80 % after ln(.2) / ln(.95) = 31.4 half seconds;
// whole permilles make it a little longer.
TEST(AegisBbrTest, CpuTakesSixteenSecondsToRise) {
  AegisBbr law({});
  int steps = 0;
  for (; law.cpu_permille() < 800; ++steps) {
    law.Watch({.now = kStart, .cpu_ratio = 1.0});
  }
  EXPECT_GE(steps, 32);
  EXPECT_LE(steps, 34);
}

GozeroShedder MakeGozero() {
  return GozeroShedder({.window = 1s, .buckets = 10});
}

// Failed requests move the average inflight and teach nothing else.
void SettleInflight(GozeroShedder& law, int inflight) {
  for (int i = 0; i < 400; ++i) {
    law.Learn({.now = kLastBucket,
               .inflight = inflight + 1,
               .outcome = Outcome::kError});
  }
  ASSERT_NEAR(law.average_inflight(), inflight, 1e-6);
}

TEST(GozeroShedderTest, BestAndLeastAreThoseOfItsTests) {
  GozeroShedder law = MakeGozero();
  EXPECT_EQ(law.BestPasses(kStart), 1);
  EXPECT_EQ(law.LeastLatencyMs(kStart), 1000);
  FillBuckets(law, Passes(100));
  EXPECT_EQ(law.LeastLatencyMs(kLastBucket), 6);
  EXPECT_EQ(law.BestPasses(kStart + 1000ms), 1000);
}

TEST(GozeroShedderTest, DropsWhenInflightAndItsAverageExceedTheMost) {
  GozeroShedder law = MakeGozero();
  FillBuckets(law, Passes(100));
  ASSERT_DOUBLE_EQ(law.MostInflight(kLastBucket), 54);

  law.set_cpu_permille(900);
  SettleInflight(law, 50);
  EXPECT_TRUE(law.Admit({.now = kLastBucket, .inflight = 80}));
  SettleInflight(law, 80);
  EXPECT_TRUE(law.Admit({.now = kLastBucket, .inflight = 50}));
  EXPECT_FALSE(law.Admit({.now = kLastBucket, .inflight = 80}));
  law.set_cpu_permille(100);
  EXPECT_FALSE(law.Admit({.now = kLastBucket + 50ms, .inflight = 80}));
  EXPECT_TRUE(law.Admit({.now = kLastBucket + 1s, .inflight = 80}));
}

TEST(GozeroShedderTest, CoolServerDropsNothing) {
  GozeroShedder law = MakeGozero();
  FillBuckets(law, Passes(100));
  SettleInflight(law, 80);
  law.set_cpu_permille(899);
  EXPECT_TRUE(law.Admit({.now = kLastBucket, .inflight = 1000}));
}

TEST(GozeroShedderTest, HeadroomScalesTheMostDownToATenth) {
  GozeroShedder law = MakeGozero();
  FillBuckets(law, Passes(100));
  SettleInflight(law, 20);
  law.set_cpu_permille(950);  // Factor .5: 27.
  EXPECT_TRUE(law.Admit({.now = kLastBucket, .inflight = 20}));
  law.set_cpu_permille(1000);  // Factor .1: 5.4.
  EXPECT_FALSE(law.Admit({.now = kLastBucket, .inflight = 20}));
}

TEST(SentinelSystemTest, ThreadsPlusOnePassBecauseTheCheckComesFirst) {
  SentinelSystem law({.threads = 2});
  EXPECT_TRUE(law.Admit({.now = kStart, .inflight = 2}));
  EXPECT_FALSE(law.Admit({.now = kStart, .inflight = 3}));
}

TEST(SentinelSystemTest, HalfAThreadLetsOneRun) {
  SentinelSystem law({.threads = 0.5});
  EXPECT_TRUE(law.Admit({.now = kStart, .inflight = 0}));
  EXPECT_FALSE(law.Admit({.now = kStart, .inflight = 1}));
}

TEST(SentinelSystemTest, RateCountsWhatPassedInTheLastTwoHalfSeconds) {
  SentinelSystem law({.qps = 3});
  EXPECT_TRUE(law.Admit({.now = kStart}));
  EXPECT_TRUE(law.Admit({.now = kStart + 400ms}));
  EXPECT_TRUE(law.Admit({.now = kStart + 600ms}));
  EXPECT_FALSE(law.Admit({.now = kStart + 999ms}));
  // The half second with two of them is gone, and refusals do not count.
  EXPECT_TRUE(law.Admit({.now = kStart + 1000ms}));
  EXPECT_TRUE(law.Admit({.now = kStart + 1100ms}));
  EXPECT_FALSE(law.Admit({.now = kStart + 1200ms}));
}

TEST(SentinelSystemTest, MeanLatencyIsOfAllCompletions) {
  SentinelSystem law({.mean_latency_ms = 20});
  law.Learn({.now = kStart, .latency = 10ms});
  law.Learn({.now = kStart, .latency = 30ms, .outcome = Outcome::kError});
  EXPECT_TRUE(law.Admit({.now = kStart}));
  law.Learn({.now = kStart, .latency = 31ms});
  EXPECT_FALSE(law.Admit({.now = kStart}));
  EXPECT_TRUE(law.Admit({.now = kStart + 1s}));
}

TEST(SentinelSystemTest, BestDoublesTheFullerHalfAndIncludesTheCurrentOne) {
  SentinelSystem law({});
  EXPECT_EQ(law.BestQps(kStart), 2);
  EXPECT_EQ(law.LeastLatencyMs(kStart), 5000);
  for (int i = 0; i < 30; ++i) law.Learn({.now = kStart, .latency = 20ms});
  for (int i = 0; i < 40; ++i) {
    law.Learn({.now = kStart + 500ms, .latency = 25ms});
  }
  EXPECT_EQ(law.BestQps(kStart + 500ms), 80);
  EXPECT_EQ(law.LeastLatencyMs(kStart + 500ms), 20);
  EXPECT_EQ(law.LeastLatencyMs(kStart + 1000ms), 25);
  law.Learn({.now = kStart + 1000ms, .latency = 100us});
  EXPECT_EQ(law.LeastLatencyMs(kStart + 1000ms), 1);
}

// 40 per half second and 25 ms: 80 * 25 / 1000 = 2 may run.
TEST(SentinelSystemTest, HighLoadOnlyArmsTheCapacityCheck) {
  SentinelSystem law({.load1 = 10});
  for (int i = 0; i < 40; ++i) law.Learn({.now = kStart, .latency = 25ms});
  EXPECT_TRUE(law.Admit({.now = kStart, .inflight = 1000}));
  law.Watch({.now = kStart, .load1 = 10});
  EXPECT_TRUE(law.Admit({.now = kStart, .inflight = 1000}));
  law.Watch({.now = kStart, .load1 = 10.5});
  EXPECT_FALSE(law.Admit({.now = kStart, .inflight = 3}));
  EXPECT_TRUE(law.Admit({.now = kStart, .inflight = 2}));
}

TEST(SentinelSystemTest, CapacityCheckNeverStopsTheSecondRequest) {
  SentinelSystem law({.load1 = 10});
  law.Learn({.now = kStart, .latency = 1ms});
  law.Watch({.now = kStart, .load1 = 100});
  EXPECT_TRUE(law.Admit({.now = kStart, .inflight = 1}));
  EXPECT_FALSE(law.Admit({.now = kStart, .inflight = 2}));
}

TEST(SentinelSystemTest, HighCpuRefusesEvenTheFirstRequest) {
  SentinelSystem law({.cpu_ratio = 0.8});
  EXPECT_TRUE(law.Admit({.now = kStart}));
  law.Watch({.now = kStart, .cpu_ratio = 0.8});
  EXPECT_TRUE(law.Admit({.now = kStart}));
  law.Watch({.now = kStart, .cpu_ratio = 0.81});
  EXPECT_FALSE(law.Admit({.now = kStart}));
}

TEST(SentinelSystemTest, UnknownLoadNeverArms) {
  SentinelSystem law({.load1 = 0});
  EXPECT_TRUE(law.Admit({.now = kStart, .inflight = 1000}));
}

}  // namespace
}  // namespace weir::rivals
