#include "weir/region.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>

#include "weir/snapshot.h"

namespace weir {
namespace {

constexpr Instant kStart{std::chrono::seconds(1000)};

Policy SomePolicy() {
  Policy policy;
  policy.service = "shop";
  policy.resources.push_back({.name = "api"});
  return policy;
}

TEST(RegionTest, ANewRegionHasItsLayout) {
  HeapRegion region(SomePolicy(), kStart);
  EXPECT_EQ(region->service(), "shop");
  EXPECT_EQ(Region::CheckLayout(region.get(), sizeof(Region)), std::nullopt);
}

TEST(RegionTest, WhatIsNotARegionOfThisLayoutIsRefused) {
  HeapRegion region(SomePolicy(), kStart);
  EXPECT_TRUE(Region::CheckLayout(region.get(), 16).has_value());
  EXPECT_TRUE(
      Region::CheckLayout(region.get(), sizeof(Region) - 1).has_value());
  region->header.layout ^= 1;
  EXPECT_TRUE(Region::CheckLayout(region.get(), sizeof(Region)).has_value());
  region->header.layout ^= 1;
  region->header.version += 1;
  EXPECT_TRUE(Region::CheckLayout(region.get(), sizeof(Region)).has_value());
  region->header.version -= 1;
  region->header.service.back() = 'x';
  EXPECT_TRUE(Region::CheckLayout(region.get(), sizeof(Region)).has_value());
  region->header.service.back() = '\0';
  region->header.magic = 0;
  EXPECT_TRUE(Region::CheckLayout(region.get(), sizeof(Region)).has_value());
}

TEST(RegionTest, EachShardIsClaimedOnceUntilAllAreTaken) {
  HeapRegion region(SomePolicy(), kStart);
  std::set<int> claimed;
  for (size_t i = 0; i < Region::kShards; ++i) {
    claimed.insert(*region->ClaimShard({.pid = 5, .start = 1}));
  }
  EXPECT_EQ(claimed.size(), Region::kShards);
  EXPECT_EQ(region->ClaimShard({.pid = 5, .start = 1}), std::nullopt);
  region->ReleaseShard(7);
  EXPECT_EQ(region->ClaimShard({.pid = 6, .start = 2}), 7);
  EXPECT_EQ(region->Owner(7), (ProcessId{.pid = 6, .start = 2}));
}

TEST(RegionTest, ReclaimTakesBackWhatTheDeadHeldOnceAndFromThemOnly) {
  HeapRegion region(SomePolicy(), kStart);
  const ProcessId dead{.pid = 5, .start = 1};
  const ProcessId other{.pid = 5, .start = 2};  // The pid, used again.
  const ProcessId self{.pid = 9, .start = 3};
  const int shard = *region->ClaimShard(dead);
  Region::Shard& s = region->shards[static_cast<size_t>(shard)];
  const auto account = static_cast<size_t>(shard);
  region->places.Add(account, 12);
  s.inflight = 10;
  s.waiting[2] = 3;
  region->queued[2].Add(account, 3);
  region->law.turn = shard + 1;

  EXPECT_EQ(region->Reclaim(shard, other, self), 0);
  EXPECT_EQ(s.inflight, 10);
  EXPECT_EQ(region->Reclaim(shard, dead, self), 10);
  EXPECT_EQ(region->places.sum(), 0);
  EXPECT_EQ(s.waiting[2], 0);
  EXPECT_EQ(region->queued[2].sum(), 0);
  EXPECT_EQ(region->law.turn, 0);
  EXPECT_EQ(region->Reclaim(shard, dead, self), 0);
  EXPECT_EQ(Read(*region)[Counter::reclaimed_total], 10u);
  EXPECT_EQ(region->ClaimShard(other), shard);
}

TEST(RegionTest, AReclaimerThatDiesHalfWayLeavesWorkForTheNext) {
  HeapRegion region(SomePolicy(), kStart);
  const ProcessId dead{.pid = 5, .start = 1};
  const ProcessId reclaimer{.pid = 6, .start = 1};
  const int shard = *region->ClaimShard(dead);
  Region::Shard& s = region->shards[static_cast<size_t>(shard)];
  s.inflight = 10;
  region->places.Add(static_cast<size_t>(shard), 10);
  // It got as far as making the shard its own.
  s.owner = uint64_t{6} << 32 | 1;
  EXPECT_EQ(region->Reclaim(shard, reclaimer, {.pid = 7, .start = 1}), 10);
  EXPECT_EQ(region->places.sum(), 0);
}

TEST(RegionTest, AResourceKeepsItsRow) {
  HeapRegion region(SomePolicy(), kStart);
  EXPECT_EQ(region->ResourceRow("api"), 0);
  EXPECT_EQ(region->ResourceRow("search"), 1);
  EXPECT_EQ(region->ResourceRow("api"), 0);
  const Snapshot snapshot = Read(*region);
  ASSERT_EQ(snapshot.resources.size(), 2u);
  EXPECT_EQ(snapshot.resources[1].name, "search");
  for (size_t i = 2; i < kMaxResources; ++i) {
    ASSERT_TRUE(region->ResourceRow("r" + std::to_string(i)).has_value());
  }
  EXPECT_EQ(region->ResourceRow("one more"), std::nullopt);
}

TEST(RegionTest, MayLieAnywhere) {
  // A copy of the bytes at another address is the same region.
  HeapRegion first(SomePolicy(), kStart);
  first->ResourceRow("api");
  HeapRegion second(SomePolicy(), kStart);
  std::memcpy(static_cast<void*>(second.get()), first.get(), sizeof(Region));
  EXPECT_EQ(Region::CheckLayout(second.get(), sizeof(Region)), std::nullopt);
  EXPECT_EQ(Read(*second).resources.at(0).name, "api");
}

TEST(RegionTest, EveryCounterHasANameAndAHelp) {
  for (const CounterInfo& info : kClassCounterInfo) {
    EXPECT_TRUE(info.name.ends_with("_total")) << info.name;
    EXPECT_TRUE(info.help.ends_with(".")) << info.name;
  }
  // The rows of reasons, stages and outcomes are found by their index.
  const auto name = [](ClassCounter first, size_t i) {
    return kClassCounterInfo[static_cast<size_t>(first) + i].name;
  };
  for (size_t i = kFirstShedReason; i < kReasons; ++i) {
    EXPECT_EQ(name(ClassCounter::shed_paused_total, i - kFirstShedReason),
              "shed_" + std::string(Name(static_cast<Reason>(i))) + "_total");
  }
  for (size_t i = Index(Stage::kSwitch); i < kStages; ++i) {
    EXPECT_EQ(
        name(ClassCounter::shadow_switch_total, i - Index(Stage::kSwitch)),
        "shadow_" + std::string(Name(static_cast<Stage>(i))) + "_total");
  }
  for (size_t i = 0; i < kOutcomes; ++i) {
    EXPECT_EQ(
        name(ClassCounter::finished_ok_total, i),
        "finished_" + std::string(Name(static_cast<Outcome>(i))) + "_total");
  }
}

}  // namespace
}  // namespace weir
