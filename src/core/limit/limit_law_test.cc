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
  input.overloaded = bound;
  input.inflight = law.mode == LawMode::kDrainWait ? law.slots() : law.slots();
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
      input.overloaded = random.Next() % 2 == 0;
      input.calm = static_cast<int64_t>(random.Next() % 3);
      input.calm_sum = latency * static_cast<double>(input.calm);
      input.arrivals = static_cast<int64_t>(random.Next() % 100);
      input.budgets = input.arrivals;
      input.budget_sum =
          static_cast<double>(input.arrivals) * random.Exponential(.5);
      input.inflight = static_cast<int64_t>(random.Next() % 100);
      input.queue_formed = random.Next() % 8 == 0;
      input.queue_empty = random.Next() % 8 == 0;
      law.Step(input, now);
      ASSERT_GE(law.slots(), config.floor);
      ASSERT_LE(law.slots(), config.ceiling);
      ASSERT_TRUE(std::isfinite(law.capacity) && law.capacity >= 0);
      ASSERT_TRUE(std::isfinite(law.base_latency) && law.base_latency >= 0);
      ASSERT_TRUE(std::isfinite(law.variation) && law.variation >= 0);
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

TEST(LimitLawTest, NothingIsShedForOverloadWhileTheSearchGoesOn) {
  const LimitLaw law = MakeLaw();
  EXPECT_TRUE(std::isinf(law.waiting_bound()));
}

}  // namespace
}  // namespace weir
