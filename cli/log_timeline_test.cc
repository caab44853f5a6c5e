#include "log_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weir/scenario/random.h"

namespace weir::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kStart = seconds(1'714'564'800);

uint64_t Sum(const std::vector<RateStep>& steps) {
  uint64_t sum = 0;
  for (const RateStep& step : steps) sum += step.count();
  return sum;
}

void ExpectGapless(const LogTimeline& timeline,
                   const std::vector<RateStep>& steps) {
  Duration at = timeline.begin();
  for (const RateStep& step : steps) {
    EXPECT_EQ(step.from, at);
    EXPECT_GT(step.length, Duration{});
    at += step.length;
  }
  EXPECT_EQ(at, timeline.end());
}

void AddPoisson(LogTimeline& timeline, scenario::Random& random, Duration from,
                Duration to, double per_second) {
  for (Duration at = from + FromSeconds(random.Exponential() / per_second);
       at < to; at += FromSeconds(random.Exponential() / per_second)) {
    timeline.AddArrival(at, Criticality::kImportant);
  }
}

TEST(LogTimelineTest, AConstantRateIsOneStep) {
  LogTimeline timeline(milliseconds(100));
  scenario::Random random(3);
  AddPoisson(timeline, random, kStart, kStart + minutes(2), 500);

  const auto steps = timeline.Steps(100);

  EXPECT_EQ(steps.size(), 1u);
  EXPECT_NEAR(timeline.Dispersion(steps), 1, .1);
}

TEST(LogTimelineTest, ABurstOfHalfASecondIsAStepOfItsOwn) {
  LogTimeline timeline(milliseconds(100));
  scenario::Random random(3);
  AddPoisson(timeline, random, kStart, kStart + minutes(2), 100);
  const Duration burst = kStart + seconds(40);
  AddPoisson(timeline, random, burst, burst + milliseconds(500), 2000);

  const auto steps = timeline.Steps(100);

  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].from, burst);
  EXPECT_EQ(steps[1].length, milliseconds(500));
  ExpectGapless(timeline, steps);
}

TEST(LogTimelineTest, ArrivalsAtEqualDistancesAreNoPoissonStream) {
  LogTimeline timeline(milliseconds(100));
  for (int i = 0; i < 6000; ++i) {
    timeline.AddArrival(kStart + i * milliseconds(7), Criticality::kVital);
  }
  EXPECT_LT(timeline.Dispersion(timeline.Steps(100)), .2);
}

TEST(LogTimelineTest, AChangeOfTheMixIsAStepToo) {
  LogTimeline timeline(milliseconds(100));
  for (int i = 0; i < 2000; ++i) {
    timeline.AddArrival(
        kStart + i * milliseconds(10),
        i < 1000 ? Criticality::kVital : Criticality::kSheddable);
  }
  EXPECT_EQ(timeline.Steps(100).size(), 2u);
}

// Goal: whatever comes in whatever order, nothing is lost, and memory stays.
TEST(LogTimelineTest, NoRequestIsLostInAnyOrder) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    scenario::Random random(seed);
    LogTimeline timeline(milliseconds(100));
    const double span = 10 * std::pow(10, random.Uniform() * 4);  // To a day.
    constexpr uint64_t kCount = 3000;
    Duration first = Duration::max();
    for (uint64_t i = 0; i < kCount; ++i) {
      const Duration at = kStart + FromSeconds(random.Uniform() * span);
      first = std::min(first, at);
      timeline.AddArrival(at, static_cast<Criticality>(i % 4));
      timeline.AddWork(at, at + FromSeconds(random.Exponential() * .1));
    }
    for (const size_t most : {1u, 7u, 200u}) {
      const auto steps = timeline.Steps(most);
      EXPECT_LE(steps.size(), most) << "seed " << seed;
      EXPECT_EQ(Sum(steps), kCount) << "seed " << seed;
      ExpectGapless(timeline, steps);
    }
    EXPECT_LE(timeline.begin(), first);
    EXPECT_GT(timeline.begin() + milliseconds(100), first);
    EXPECT_LE(timeline.Windows().size(), 65'536u);
  }
}

// The slow model: the time of every request, cut at the windows.
TEST(LogTimelineTest, ConcurrencyIsTheTimeInProgressByTheLengthOfTheWindow) {
  scenario::Random random(5);
  LogTimeline timeline(milliseconds(100));
  std::vector<std::pair<Duration, Duration>> work;
  for (int i = 0; i < 500; ++i) {
    const Duration from = kStart + FromSeconds(random.Uniform() * 20);
    const Duration to = from + FromSeconds(random.Exponential() * 2);
    work.emplace_back(from, to);
    timeline.AddArrival(from, Criticality::kImportant);
    timeline.AddWork(from, to);
  }
  for (const auto& window : timeline.Windows()) {
    double busy = 0;
    for (const auto& [from, to] : work) {
      const Duration both =
          std::min(to, window.at + window.length) - std::max(from, window.at);
      busy += std::max(0., ToSeconds(both));
    }
    EXPECT_NEAR(window.concurrency, busy / ToSeconds(window.length), 1e-6);
  }
}

TEST(LogTimelineTest, CoarserBinsKeepTheConcurrency) {
  LogTimeline timeline(milliseconds(100));
  timeline.AddArrival(kStart, Criticality::kImportant);
  timeline.AddWork(kStart + milliseconds(130), kStart + milliseconds(5130));
  timeline.AddArrival(kStart + hours(20), Criticality::kImportant);
  double seconds_busy = 0;
  for (const auto& window : timeline.Windows()) {
    seconds_busy += window.concurrency * ToSeconds(window.length);
  }
  EXPECT_GT(timeline.width(), milliseconds(100));
  EXPECT_NEAR(seconds_busy, 5, 1e-6);
}

}  // namespace
}  // namespace weir::cli
