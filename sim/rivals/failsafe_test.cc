// Conformance of failsafe-go's limiter, its prioritized form and its throttler:
// what its own tests assert.

#include <gtest/gtest.h>

#include <cstdint>

#include "samples_test.h"
#include "weir/rivals/averages.h"
#include "weir/rivals/failsafe_limiter.h"
#include "weir/rivals/failsafe_priority.h"
#include "weir/rivals/failsafe_throttler.h"
#include "weir/splitmix64.h"

namespace weir::rivals {
namespace {

// A limiter with a baseline of 1 s and windows of one sample, two seconds
// apart.
class FailsafeLimiterTest : public testing::Test {
 protected:
  static FailsafeLimiter Make(FailsafeLimiter::Config config = {}) {
    config.window_ceiling = 1s;
    config.least_samples = 1;
    FailsafeLimiter law(config);
    law.WarmBaseline(1s, 10);
    return law;
  }
  int Record(FailsafeLimiter& law, Duration latency, int inflight,
             Duration after = 2s) {
    now_ += after;
    law.Learn({.now = now_,
               .latency = latency,
               .inflight_at_start = inflight,
               .inflight = inflight});
    return law.Limit(now_);
  }

  Instant now_ = kStart;
};

TEST_F(FailsafeLimiterTest, StartsAtTwenty) {
  EXPECT_EQ(FailsafeLimiter({}).Limit(kStart), 20);
}

TEST_F(FailsafeLimiterTest, IncreasesWhileLatencyIsNormal) {
  FailsafeLimiter law = Make();
  EXPECT_EQ(Record(law, 1s, 5), 21);
  EXPECT_EQ(Record(law, 500ms, 5), 22);
}

TEST_F(FailsafeLimiterTest, DecreasesWhenLatencyDoubles) {
  FailsafeLimiter law = Make();
  EXPECT_EQ(Record(law, 2s, 10), 19);
  EXPECT_EQ(Record(law, 2s, 10), 18);
}

TEST_F(FailsafeLimiterTest, HoldsInBetween) {
  FailsafeLimiter law = Make();
  EXPECT_EQ(Record(law, 1300ms, 10), 20);
  EXPECT_EQ(Record(law, 1300ms, 10), 20);
}

TEST_F(FailsafeLimiterTest, SmoothsAndFiltersLatencies) {
  FailsafeLimiter law = Make();
  for (const Duration latency : {100ms, 300ms, 200ms, 200ms, 250ms}) {
    Record(law, latency, 10);
  }
  EXPECT_EQ(law.median_latency_ns(), 200e6);
  EXPECT_EQ(law.recent_latency_ns(), 200e6);
}

TEST_F(FailsafeLimiterTest, DipInInflightLowersTheLimitUnlessStabilized) {
  FailsafeLimiter::Config config{.ceiling_factor = 1.5};
  FailsafeLimiter plain = Make(config);
  EXPECT_EQ(Record(plain, 1s, 20), 21);
  EXPECT_EQ(Record(plain, 1s, 5), 20);

  config.stabilization = 5min;
  FailsafeLimiter patient = Make(config);
  EXPECT_EQ(Record(patient, 1s, 20), 21);
  EXPECT_EQ(Record(patient, 1s, 5), 22);

  config.stabilization = 10s;
  FailsafeLimiter forgetful = Make(config);
  EXPECT_EQ(Record(forgetful, 1s, 20), 21);
  EXPECT_EQ(Record(forgetful, 1s, 5, 10s), 20);
}

TEST_F(FailsafeLimiterTest, MostLimitFollowsItsFactor) {
  const FailsafeLimiter::Config flat{.ceiling_factor = 5};
  EXPECT_EQ(FailsafeLimiter::MostLimit(flat, 100), 500);
  EXPECT_EQ(FailsafeLimiter::MostLimit(flat, 200), 1000);
  const FailsafeLimiter::Config decaying{.ceiling_factor = 5,
                                         .factor_decay = 1};
  EXPECT_DOUBLE_EQ(FailsafeLimiter::MostLimit(decaying, 10), 40);
  EXPECT_DOUBLE_EQ(FailsafeLimiter::MostLimit(decaying, 100), 300);
  EXPECT_NEAR(FailsafeLimiter::MostLimit(decaying, 200), 540, 1);
  EXPECT_DOUBLE_EQ(FailsafeLimiter::MostLimit(decaying, 1000), 2000);
  const FailsafeLimiter::Config floored{
      .ceiling_factor = 5, .factor_decay = 2, .factor_floor = 1.2};
  EXPECT_DOUBLE_EQ(FailsafeLimiter::MostLimit(floored, 10'000), 12'000);
}

// Goal: the second signal works: with latency rising exactly as inflight does,
// throughput is flat, and a full limiter comes down although the queue
// estimate, whose baseline drifts along, would let it hold or grow.
TEST_F(FailsafeLimiterTest, FlatThroughputLowersAFullLimit) {
  FailsafeLimiter law = Make();
  int highest = 0;
  int limit = 20;
  for (int i = 0; i < 60; ++i) {
    const int inflight = law.Limit(now_);
    limit = Record(law, inflight * 50ms, inflight);
    highest = std::max(highest, limit);
  }
  EXPECT_LT(limit, highest);
}

TEST(FailsafeAveragesTest, MovingAverageIsItsOwnTests) {
  WarmedAverage warmed(5, 3);
  warmed.Add(10);
  warmed.Add(20);
  EXPECT_DOUBLE_EQ(warmed.Add(30), 20);

  WarmedAverage decaying(3, 2);
  for (const double value : {10, 20, 30}) decaying.Add(value);
  EXPECT_NEAR(decaying.Add(40), 31, 0.5);

  WarmedAverage cold(5, 0);
  cold.Add(100);
  EXPECT_NEAR(cold.Add(50), 39, 0.5);
}

TEST(FailsafeAveragesTest, MedianIsItsOwnTests) {
  MovingMedian three(3);
  three.Add(1);
  three.Add(2);
  EXPECT_EQ(three.Add(3), 2);
  EXPECT_EQ(three.Add(4), 3);

  MovingMedian five(5);
  for (const double value : {5, 2, 8, 1}) five.Add(value);
  EXPECT_EQ(five.Add(9), 5);

  MovingMedian young(3);
  EXPECT_EQ(young.Add(5), 5);
  EXPECT_EQ(young.value(), 0);
}

TEST(FailsafeAveragesTest, CorrelationIsOneForALineAndNothingWhenCold) {
  CorrelationWindow window(50, 10);
  CorrelationWindow::State state;
  for (int i = 1; i <= 9; ++i) state = window.Add(i, 2 * i);
  EXPECT_EQ(state.correlation, 0);
  EXPECT_NEAR(window.Add(10, 20).correlation, 1, 1e-12);
  for (int i = 0; i < 50; ++i) state = window.Add(i + 1, 100 - i);
  EXPECT_NEAR(state.correlation, -1, 1e-12);
}

struct QueueCase {
  int queued;
  int first;
  int full;
  double ratio;
};

TEST(FailsafePriorityTest, RefusalRisesFromTheFirstThresholdToTheSecond) {
  constexpr QueueCase kCases[] = {
      {5, 10, 20, 0},
      {60, 60, 100, 0},
      {80, 60, 100, 0.5},
      {100, 60, 100, 1},
      {120, 60, 100, 1},
      {11, 10, 20, 0.1},
      {3, 3, 3, 1},
      {2, 3, 3, 0},
      // Its test of one limit, factors 2 and 4, submits four: three wait.
      {3, 2, 4, 0.5},
  };
  for (const QueueCase& c : kCases) {
    EXPECT_DOUBLE_EQ(FailsafePriority::RefusalRatio(c.queued, c.first, c.full),
                     c.ratio)
        << c.queued << " queued, " << c.first << " to " << c.full;
  }
}

TEST(FailsafePriorityTest, FullLimiterRefusesTheLowerHalfAtHalfTheRamp) {
  FailsafePriority law({});
  SplitMix64 random(11);
  int refused[kCriticalities] = {};
  for (int i = -2000; i < 4000; ++i) {
    // 50 wait at a limit of 20: half of the way from 40 to 60.
    const size_t criticality = random.Next() % kCriticalities;
    const Arrival arrival{.now = kStart + i * 1ms,
                          .inflight = 20,
                          .queued = 50,
                          .criticality = Criticality(criticality),
                          .draw = random.Next()};
    // The first 2000 fill its memory of levels.
    if (!law.Admit(arrival) && i >= 0) ++refused[criticality];
  }
  EXPECT_EQ(refused[0], 0);
  EXPECT_LT(refused[1], 100);
  EXPECT_GT(refused[2], 600);
  EXPECT_GT(refused[3], 600);
}

TEST(FailsafePriorityTest, RoomAdmitsEveryPriority) {
  FailsafePriority law({});
  EXPECT_TRUE(law.Admit({.now = kStart,
                         .inflight = 19,
                         .queued = 100,
                         .criticality = Criticality::kSheddable}));
}

struct ThrottleCase {
  int64_t requests;
  int64_t successes;
  double ceiling;
  double least;
  double most;
};

TEST(FailsafeThrottlerTest, RefusesTheShareOfItsTests) {
  constexpr ThrottleCase kCases[] = {
      {100, 95, 0.9, 0, 0},
      {120, 90, 0.9, 20.0 / 121, 20.0 / 121},
      {200, 50, 0.9, 0.7185, 0.7187},
      {1000, 10, 0.8, 0.8, 0.8},
      {0, 0, 0.8, 0, 0},
      {100, 0, 0.8, 0.8, 0.8},
      {1, 0, 0.9, 0.5, 0.5},
  };
  for (const ThrottleCase& c : kCases) {
    const double ratio = FailsafeThrottler::RefusalRatio(
        {.ceiling = c.ceiling}, c.requests, c.successes);
    EXPECT_GE(ratio, c.least - 1e-9) << c.successes << " of " << c.requests;
    EXPECT_LE(ratio, c.most + 1e-9) << c.successes << " of " << c.requests;
  }
}

TEST(FailsafeThrottlerTest, RefusesNothingBelowItsLeastRequests) {
  FailsafeThrottler law({.least_requests = 10});
  for (int i = 0; i < 9; ++i) {
    law.Learn({.now = kStart, .outcome = Outcome::kError});
  }
  EXPECT_TRUE(law.Admit({.now = kStart, .draw = 0}));
  law.Learn({.now = kStart, .outcome = Outcome::kError});
  EXPECT_FALSE(law.Admit({.now = kStart, .draw = 0}));
  EXPECT_TRUE(law.Admit({.now = kStart + 61s, .draw = 0}));
}

}  // namespace
}  // namespace weir::rivals
