#include "weir/shed/fair_usage.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

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

// Two thousand light clients that are known, beside a heavy one.
TEST(FairUsageTest, OneHeavyClientSpoilsHardlyAnyLightOne) {
  const auto usage = std::make_unique<FairUsage>();
  testing::Random random(3);
  std::vector<uint64_t> light(2000);
  for (uint64_t& client : light) {
    client = random.Next() | 2;
    for (int i = 0; i < 2; ++i) usage->Add(client, kStart - seconds(40));
  }
  for (int i = 0; i < 100'000; ++i) usage->Add(1, kStart);
  int spoiled = 0;
  for (const uint64_t client : light) {
    if (usage->Level(client, kStart) > 1) ++spoiled;
  }
  EXPECT_LE(spoiled, 5);
  EXPECT_EQ(usage->Level(1, kStart), 16);
}

// Clients who ask twice a second each for ten seconds, until `now`.
void LetClientsAsk(FairUsage& usage, int clients, Instant now) {
  for (int half = 0; half < 20; ++half) {
    for (int i = 0; i < clients; ++i) {
      usage.Add(1000 + static_cast<uint64_t>(i),
                now - seconds(10) + milliseconds(500 * half + i % 500));
    }
  }
}

TEST(FairUsageTest, WhoGivesNoNameSharesOneUsageWithAllWhoDoNot) {
  const auto usage = std::make_unique<FairUsage>();
  LetClientsAsk(*usage, 10, kStart);
  for (int i = 0; i < 1000; ++i) usage->Add(0, kStart);
  EXPECT_GE(usage->Level(0, kStart), 7);
  EXPECT_LE(usage->Level(1003, kStart), 2);
}

TEST(FairUsageTest, ANewNameForEachRequestIsNoOtherClient) {
  const auto usage = std::make_unique<FairUsage>();
  LetClientsAsk(*usage, 10, kStart);
  testing::Random random(5);
  for (int i = 0; i < 1000; ++i) usage->Add(random.Next() | 1, kStart);
  EXPECT_GE(usage->Level(random.Next() | 1, kStart), 7);
  EXPECT_GE(usage->Level(0, kStart), 7);
  EXPECT_LE(usage->Level(1003, kStart), 2);
}

TEST(FairUsageTest, ANewcomerIsNoBetterThanTheTypicalClient) {
  const auto usage = std::make_unique<FairUsage>();
  LetClientsAsk(*usage, 100, kStart);
  const double typical = usage->TypicalUsage(kStart);
  EXPECT_NEAR(typical, 2, 1);
  EXPECT_DOUBLE_EQ(usage->Usage(7, kStart), typical);
}

TEST(FairUsageTest, ANameThatBecomesKnownStartsWhereTheTypicalClientIs) {
  const auto usage = std::make_unique<FairUsage>();
  Instant now = kStart;
  for (int i = 0; i < 2000; ++i, now += milliseconds(10)) {
    for (uint64_t client = 1000; client < 1020; ++client) {
      usage->Add(client, now);
    }
  }
  const double typical = usage->TypicalUsage(now);
  EXPECT_NEAR(typical, 100, 10);
  for (int i = 0; i < 2; ++i) usage->Add(7, now);
  EXPECT_TRUE(usage->IsKnown(7, now));
  EXPECT_NEAR(usage->Usage(7, now), typical, 1);
}

TEST(FairUsageTest, AFewHeavyClientsAreNotTypical) {
  const auto usage = std::make_unique<FairUsage>();
  Instant now = kStart;
  for (int i = 0; i < 20'000; ++i, now += milliseconds(1)) {
    usage->Add(7, now);
    usage->Add(8, now);
    // Fifty who ask four times a second each.
    if (i % 5 == 0) usage->Add(1000 + static_cast<uint64_t>(i / 5 % 50), now);
  }
  EXPECT_GT(usage->Usage(7, now), 900);
  EXPECT_LT(usage->TypicalUsage(now), 8);
}

// Otherwise a heavy client that is known would keep out all who come for the
// first time.
TEST(FairUsageTest, StrangersAreWorthAnEighthOfThoseWhoAreKnown) {
  const auto usage = std::make_unique<FairUsage>();
  LetClientsAsk(*usage, 400, kStart);
  for (int i = 0; i < 500; ++i) usage->Add(7, kStart);
  for (int i = 0; i < 500; ++i) usage->Add(0, kStart);
  EXPECT_GE(usage->Level(7, kStart), usage->Level(0, kStart) + 3);
}

TEST(FairUsageTest, AMinuteLaterANameIsStrangeAgain) {
  const auto usage = std::make_unique<FairUsage>();
  for (int i = 0; i < 2; ++i) usage->Add(7, kStart);
  EXPECT_TRUE(usage->IsKnown(7, kStart + seconds(55)));
  EXPECT_FALSE(usage->IsKnown(7, kStart + seconds(65)));
}

// Goal: a flood of names does not push out of the memory who is known.
TEST(FairUsageTest, AFloodOfNamesForgetsNobodyWhoAsks) {
  const auto usage = std::make_unique<FairUsage>();
  testing::Random random(6);
  for (int i = 0; i < 100'000; ++i) {
    const Instant now = kStart + milliseconds(i / 10);
    if (i % 1000 == 0) {
      for (uint64_t client = 1; client <= 200; ++client) {
        usage->Add(client, now);
      }
    }
    usage->Add(random.Next() | 1 << 20, now);
  }
  int known = 0;
  for (uint64_t client = 1; client <= 200; ++client) {
    known += usage->IsKnown(client, kStart + seconds(10));
  }
  EXPECT_EQ(known, 200);
}

}  // namespace
}  // namespace weir
