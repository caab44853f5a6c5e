// Guards of several threads at one region: for ThreadSanitizer, and for what
// must hold whatever the interleaving.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "testing/simulated_service.h"
#include "weir/guard.h"
#include "weir/snapshot.h"

namespace weir {
namespace {

constexpr Instant kStart{std::chrono::seconds(1000)};

TEST(GuardThreadsTest, ThreadsNeverRunMoreThanTheLimitTogether) {
  constexpr int kThreads = 4;
  constexpr int kLimit = 7;
  constexpr int kRounds = 20'000;
  Policy policy;
  policy.service = "test";
  policy.limit_floor = policy.limit_ceiling = kLimit;
  policy.resources.push_back({.name = "api"});
  HeapRegion region(policy, kStart);
  const auto shared = std::make_shared<Policy>(policy);
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<uint64_t> admitted = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const int shard = *region->ClaimShard({.pid = 10 + t, .start = 1});
      auto guard = std::move(*Guard::Make(shared, *region, shard, kStart));
      testing::Random random(static_cast<uint64_t>(t));
      std::vector<Permit> permits;
      std::array<Waiter, 8> waiters;
      Instant now = kStart;
      const auto start = [&](Permit permit) {
        const int n = ++running;
        int seen = most.load();
        while (n > seen && !most.compare_exchange_weak(seen, n)) {
        }
        permits.push_back(std::move(permit));
        ++admitted;
      };
      const auto finish = [&] {
        --running;  // First: the place may be taken by others at once.
        guard->Finish(std::move(permits.back()), Outcome::kOk, now);
        permits.pop_back();
      };
      for (int round = 0; round < kRounds; ++round) {
        now += Duration(static_cast<int64_t>(random.Next() % 100'000));
        const uint64_t choice = random.Next() % 8;
        Waiter& waiter = waiters[random.Next() % waiters.size()];
        if (choice < 3 && !waiter.waiting()) {
          const Request request{
              .criticality = static_cast<Criticality>(random.Next() % 4),
              .client = random.Next() % 3,
              .arrived = now,
              .deadline = now + std::chrono::milliseconds(5)};
          Admission a = guard->Admit(request, waiter, now);
          if (a.permit) start(std::move(a.permit));
        } else if (choice < 6 && !permits.empty()) {
          finish();
        } else if (choice == 6) {
          guard->Cancel(waiter, now);
        } else {
          guard->Tick(now);
        }
        while (Waiter* decided = guard->NextDecided()) {
          if (Permit permit = decided->TakePermit()) start(std::move(permit));
        }
      }
      guard->Stop(now);
      while (guard->NextDecided() != nullptr) {
      }
      while (!permits.empty()) finish();
      guard.reset();
      region->ReleaseShard(shard);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, kLimit);
  EXPECT_GT(admitted, 1000u);
  const Snapshot snapshot = Read(*region);
  EXPECT_EQ(snapshot.inflight, 0);
  EXPECT_EQ(snapshot[Counter::reclaimed_total], 0u);
  EXPECT_EQ(region->places.sum(), 0);
}

TEST(GuardThreadsTest, AReaderMayLookAtAnyTime) {
  Policy policy;
  policy.service = "test";
  policy.resources.push_back({.name = "api"});
  HeapRegion region(policy, kStart);
  std::atomic<bool> done = false;
  std::thread reader([&] {
    uint64_t before = 0;
    while (!done) {
      const Snapshot snapshot = Read(*region);
      const uint64_t offered = snapshot[ClassCounter::offered_total][1];
      EXPECT_GE(offered, before);
      before = offered;
    }
  });
  const int shard = *region->ClaimShard({.pid = 1, .start = 1});
  auto guard = std::move(
      *Guard::Make(std::make_shared<Policy>(policy), *region, shard, kStart));
  Instant now = kStart;
  for (int i = 0; i < 50'000; ++i) {
    now += std::chrono::microseconds(50);
    Admission a = guard->Admit({.arrived = now}, now);
    guard->Finish(std::move(a.permit), Outcome::kOk, now + Duration(1000));
  }
  done = true;
  reader.join();
  EXPECT_EQ(Read(*region)[ClassCounter::offered_total][1], 50'000u);
}

}  // namespace
}  // namespace weir
