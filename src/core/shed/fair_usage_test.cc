#include "weir/shed/fair_usage.h"

#include <gtest/gtest.h>

#include <memory>

#include "testing/simulated_service.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

TEST(FairUsageTest, CountsWhatAClientStartedWithinTheLastSecondOrSo) {
  const auto usage = std::make_unique<FairUsage>();
  for (int i = 0; i < 100; ++i) usage->Add(7, kStart);
  EXPECT_EQ(usage->Usage(7, kStart), 100);
  EXPECT_EQ(usage->Level(7, kStart), 6);  // floor(log2(101))
  EXPECT_EQ(usage->Usage(8, kStart), 0);
  EXPECT_EQ(usage->Level(8, kStart), 0);
}

TEST(FairUsageTest, ForgetsWithAMemoryOfOneSecond) {
  const auto usage = std::make_unique<FairUsage>();
  for (int i = 0; i < 100; ++i) usage->Add(7, kStart);
  EXPECT_NEAR(usage->Usage(7, kStart + seconds(1)), 50, 1);
  EXPECT_LT(usage->Usage(7, kStart + seconds(1000)), .2);
}

TEST(FairUsageTest, ASteadyClientIsSeenAtItsRate) {
  const auto usage = std::make_unique<FairUsage>();
  Instant now = kStart;
  for (int i = 0; i < 5000; ++i) usage->Add(7, now += milliseconds(2));
  EXPECT_NEAR(usage->Usage(7, now), 500, 10);
}

TEST(FairUsageTest, AnUnknownClientHasNeverUsedAnything) {
  const auto usage = std::make_unique<FairUsage>();
  for (int i = 0; i < 100; ++i) usage->Add(0, kStart);
  EXPECT_EQ(usage->Level(0, kStart), 0);
}

TEST(FairUsageTest, AClockThatStepsBackForgetsNothing) {
  const auto usage = std::make_unique<FairUsage>();
  for (int i = 0; i < 100; ++i) usage->Add(7, kStart);
  EXPECT_EQ(usage->Usage(7, kStart - seconds(1)), 100);
}

// A million light clients in fixed memory, one of them heavy.
TEST(FairUsageTest, OneHeavyClientSpoilsHardlyAnyLightOne) {
  const auto usage = std::make_unique<FairUsage>();
  for (int i = 0; i < 100'000; ++i) usage->Add(1, kStart);
  testing::Random random(3);
  int spoiled = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    if (usage->Level(random.Next() | 2, kStart) > 0) ++spoiled;
  }
  EXPECT_LE(spoiled, 5);
  EXPECT_EQ(usage->Level(1, kStart), 16);
}

}  // namespace
}  // namespace weir
