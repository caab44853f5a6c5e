// TopWatch against real segments: a service that stops, goes and comes back.

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "top_watch.h"
#include "weir/shm/lease.h"

namespace weir::cli {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1h};

class TopWatchTest : public ::testing::Test {
 protected:
  TopWatchTest() {
    policy_.service = "weir-top-test-" + std::to_string(::getpid());
    policy_.resources.emplace_back().name = "all";
  }
  ~TopWatchTest() override { (void)shm::RemoveSegment(policy_.service, true); }

  shm::SharedRegion Serve() {
    auto region = shm::SharedRegion::Open(policy_, kStart);
    EXPECT_TRUE(region.ok()) << region.error().message;
    return std::move(*region);
  }

  Policy policy_;
};

TEST_F(TopWatchTest, NeedsAService) {
  EXPECT_FALSE(TopWatch::Open(policy_.service, kStart).ok());
}

TEST_F(TopWatchTest, FollowsAServiceThroughStopRemovalAndReturn) {
  std::optional<shm::SharedRegion> region = Serve();
  std::optional<shm::ShardLease> lease = *shm::ShardLease::Claim(**region);
  auto watch = TopWatch::Open(policy_.service, kStart);
  ASSERT_TRUE(watch.ok()) << watch.error().message;
  constexpr auto kOffered = static_cast<size_t>(ClassCounter::offered_total);
  (*region)->shards[0].by_class[kOffered][0].store(10);

  Result<TopFrame> frame = watch->Next(kStart + 2s);
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame->state, ServiceState::kLive);
  EXPECT_EQ(frame->seconds, 2);
  EXPECT_EQ(frame->before.by_class[kOffered][0], 0U);
  EXPECT_EQ(frame->now.by_class[kOffered][0], 10U);

  lease.reset();
  frame = watch->Next(kStart + 3s);
  EXPECT_EQ(frame->state, ServiceState::kNoWorkers);
  EXPECT_EQ(frame->seconds, 1);

  region.reset();
  ASSERT_FALSE(shm::RemoveSegment(policy_.service));
  for (int i = 4; i < 7; ++i) {
    frame = watch->Next(kStart + i * 1s);
    ASSERT_TRUE(frame.ok());
    EXPECT_EQ(frame->state, ServiceState::kRemoved);
    EXPECT_EQ(frame->now.by_class[kOffered][0], 10U) << "its last figures";
    EXPECT_EQ(frame->seconds, 0);
  }

  region = Serve();
  lease = *shm::ShardLease::Claim(**region);
  frame = watch->Next(kStart + 8s);
  EXPECT_EQ(frame->state, ServiceState::kLive);
  EXPECT_EQ(frame->seconds, 0) << "there is only one reading yet";
  EXPECT_EQ(watch->Next(kStart + 9s)->seconds, 1);
}

TEST_F(TopWatchTest, DeadWorkersAreToldFromLiveOnes) {
  const shm::SharedRegion region = Serve();
  const auto lease = shm::ShardLease::Claim(*region);
  ASSERT_TRUE(region->ClaimShard({.pid = ::getpid(), .start = 1}));
  auto watch = TopWatch::Open(policy_.service, kStart);
  const Result<TopFrame> frame = watch->Next(kStart + 1s);
  EXPECT_EQ(frame->alive, (std::vector<bool>{true, false}));
  EXPECT_EQ(frame->state, ServiceState::kLive);
}

TEST_F(TopWatchTest, WhatComesBackUnreadableIsAnError) {
  { Serve(); }
  auto watch = TopWatch::Open(policy_.service, kStart);
  ASSERT_FALSE(shm::RemoveSegment(policy_.service));
  const std::string path = shm::SegmentPath(policy_.service);
  ASSERT_EQ(::symlink("/etc/passwd", path.c_str()), 0);
  const Result<TopFrame> frame = watch->Next(kStart + 1s);
  ASSERT_FALSE(frame.ok());
  EXPECT_NE(frame.error().message.find(path), std::string::npos);
}

}  // namespace
}  // namespace weir::cli
