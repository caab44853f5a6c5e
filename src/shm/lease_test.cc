#include "weir/shm/lease.h"

#include <gmock/gmock.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "process.h"
#include "testing.h"
#include "weir/guard.h"
#include "weir/snapshot.h"

namespace weir::shm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr auto kAll = static_cast<int>(Region::kShards);

TEST(ParseStatTest, ReadsPastAnyName) {
  const std::string_view rest =
      " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 7 18 4294967306 20";
  for (const std::string_view name :
       {"weir", "", "a b", ") S 1 (", "((((", "x) Z 1 1 1"}) {
    const std::string line =
        "42 (" + std::string(name) + ')' + std::string(rest);
    const auto stat = ParseStat(line);
    ASSERT_TRUE(stat) << line;
    EXPECT_EQ(stat->state, 'S') << line;
    EXPECT_EQ(stat->threads, 7) << line;
    EXPECT_EQ(stat->start, 10U) << line << ": the low bits";
  }
}

TEST(ParseStatTest, RefusesLinesThatEndEarly) {
  const std::string line =
      "42 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 7 18 ";
  for (size_t length = 0; length <= line.size(); ++length) {
    EXPECT_FALSE(ParseStat(line.substr(0, length))) << length;
  }
}

TEST(IsAliveTest, ThisProcessIs) {
  EXPECT_EQ(Self().pid, ::getpid());
  EXPECT_NE(Self().start, 0U);
  EXPECT_TRUE(IsAlive(Self()));
}

TEST(IsAliveTest, NobodyIsNot) {
  EXPECT_FALSE(IsAlive({}));
  EXPECT_FALSE(IsAlive({.pid = -1, .start = 0}));
}

TEST(IsAliveTest, PidUsedAgainIsAnotherProcess) {
  ProcessId other = Self();
  ++other.start;
  EXPECT_FALSE(IsAlive(other));
}

TEST(IsAliveTest, KilledIsDeadAlsoBeforeItIsReaped) {
  ProcessId id;
  Child child([](const Child::Meet& meet) { meet(); });
  ASSERT_TRUE(child.Await());
  id = {.pid = child.pid(), .start = 0};
  EXPECT_FALSE(IsAlive(id)) << "it started later than at boot";
  // Read as the child itself would.
  std::FILE* file = std::fopen(
      ("/proc/" + std::to_string(child.pid()) + "/stat").c_str(), "r");
  std::array<char, 1024> line{};
  ASSERT_NE(std::fgets(line.data(), line.size(), file), nullptr);
  std::fclose(file);
  id.start = ParseStat(line.data())->start;
  EXPECT_TRUE(IsAlive(id));

  child.KillOnly();

  EXPECT_FALSE(IsAlive(id)) << "a zombie";
  child.Join();
  EXPECT_FALSE(IsAlive(id)) << "reaped";
}

// Its first thread shows as a zombie then, as a dead process would.
TEST(IsAliveTest, ProcessWhoseFirstThreadEndedIsAlive) {
  std::array<int, 2> report{};
  ASSERT_EQ(::pipe(report.data()), 0);
  static int report_fd;
  report_fd = report[1];
  const pid_t pid = ::fork();
  if (pid == 0) {
    static ProcessId self;
    self = Self();
    pthread_t thread{};
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          // Until the first thread's end shows.
          std::string state;
          while (state != "Z") {
            std::FILE* file = std::fopen("/proc/self/stat", "r");
            std::array<char, 1024> line{};
            (void)!std::fgets(line.data(), line.size(), file);
            std::fclose(file);
            state = std::string(1, ParseStat(line.data())->state);
          }
          const char alive = IsAlive(self) ? 'y' : 'n';
          (void)!::write(report_fd, &alive, 1);
          ::_exit(0);
        },
        nullptr);
    // Not pthread_exit(): that would unwind through the test.
    ::syscall(SYS_exit, 0);
  }
  char alive = '?';
  EXPECT_EQ(::read(report[0], &alive, 1), 1);
  EXPECT_EQ(alive, 'y');
  ::waitpid(pid, nullptr, 0);
  ::close(report[0]);
  ::close(report[1]);
}

// A pid that was used again, by a user whom we may not signal.
TEST(IsAliveTest, PidUsedAgainByAnotherUserIsAnotherProcess) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ProcessId dead = Self();
  ++dead.start;
  Child other([&](const Child::Meet&) {
    ASSERT_EQ(::setuid(65534), 0);
    ASSERT_NE(::kill(dead.pid, 0), 0);
    EXPECT_FALSE(IsAlive(dead));
  });
  EXPECT_EQ(other.Join(), 0);
}

TEST(IsAliveTest, ProcessThatMayNotBeLookedAtCountsAsAlive) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const ProcessId parent = Self();
  Child other([&](const Child::Meet&) {
    ASSERT_EQ(::setuid(65534), 0);
    ASSERT_NE(::kill(parent.pid, 0), 0);
    EXPECT_TRUE(IsAlive(parent));
  });
  EXPECT_EQ(other.Join(), 0);
}

class LeaseTest : public SegmentTest {
 protected:
  LeaseTest() : region_(OpenOrDie()) {}

  int64_t Inflight() const { return Read(*region_).inflight; }
  int64_t Held() const { return region_->places.sum(); }

  ShardLease ClaimOrDie() {
    auto lease = ShardLease::Claim(*region_);
    if (!lease) {
      ADD_FAILURE() << lease.error().message;
      std::abort();
    }
    return std::move(*lease);
  }

  std::unique_ptr<Guard> MakeGuard(const ShardLease& lease, Instant now) {
    auto guard = Guard::Make(std::make_shared<Policy>(policy_), *region_,
                             lease.shard(), now);
    if (!guard) {
      ADD_FAILURE() << guard.error().message;
      std::abort();
    }
    return std::move(*guard);
  }

  // A worker that admits `count` requests, of a limit that lets it, and hangs.
  Child Holder(int count) {
    return Child([this, count](const Child::Meet& meet) {
      const ShardLease lease = ClaimOrDie();
      const auto guard = MakeGuard(lease, kStart);
      std::vector<Permit> permits;
      for (int i = 0; i < count; ++i) {
        Admission admission = guard->Admit({.arrived = kStart}, kStart);
        ASSERT_EQ(admission.decision.verdict, Verdict::kAdmit);
        permits.push_back(std::move(admission.permit));
      }
      meet();
    });
  }

  SharedRegion region_;
};

// The limit is known from the start: 1.1 * workers.
class KnownLimitTest : public LeaseTest {
 protected:
  // The region is made before this runs; so make it anew.
  KnownLimitTest() {
    ::unlink(path().c_str());
    policy_.workers = 100;
    region_ = OpenOrDie();
  }
};

TEST_F(LeaseTest, GivesTheShardBackAtItsEnd) {
  {
    const ShardLease lease = ClaimOrDie();
    EXPECT_EQ(region_->Owner(lease.shard()), Self());
  }
  EXPECT_EQ(region_->Owner(0).pid, 0);
}

TEST_F(LeaseTest, MovesWithoutGivingBack) {
  ShardLease first = ClaimOrDie();
  ShardLease second = std::move(first);
  EXPECT_EQ(region_->Owner(second.shard()), Self());
  {
    ShardLease third = ClaimOrDie();
    ASSERT_NE(third.shard(), second.shard());
    third = std::move(second);
    EXPECT_EQ(third.shard(), 0);
  }
  EXPECT_EQ(region_->Owner(0).pid, 0);
}

TEST_F(LeaseTest, ForkedCopyGivesNothingBack) {
  auto lease = std::make_unique<ShardLease>(ClaimOrDie());
  Child child([&](const Child::Meet&) { lease.reset(); });
  EXPECT_EQ(child.Join(), 0);
  EXPECT_EQ(region_->Owner(lease->shard()), Self());
}

// exec() keeps pid and start time.
TEST_F(LeaseTest, AProcessThatReplacesItselfGetsItsShardBack) {
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").string();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const ShardLease lease = ClaimOrDie();
    region_->shards[static_cast<size_t>(lease.shard())].inflight.store(3);
    region_->places.Add(static_cast<size_t>(lease.shard()), 3);
    ::setenv("WEIR_TEST_SERVICE", service().c_str(), 1);
    ::execl(program.c_str(), program.c_str(),
            "--gtest_filter=ReplacedProcess.*",
            "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
    ::_exit(9);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(region_->places.sum(), 0);
  EXPECT_EQ(region_->Owner(0).pid, 0);
}

// What the program above has become.
TEST(ReplacedProcess, DISABLED_ClaimsItsOldShard) {
  const char* const service = std::getenv("WEIR_TEST_SERVICE");
  if (service == nullptr) GTEST_SKIP() << "run by another test only";
  Policy policy;
  policy.service = service;
  policy.resources.emplace_back().name = "all";
  auto region = SharedRegion::Open(policy, kStart);
  ASSERT_TRUE(region.ok());
  ASSERT_EQ((*region)->places.sum(), 3);
  const auto first = ShardLease::Claim(**region);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->shard(), 0);
  EXPECT_EQ((*region)->places.sum(), 0);
  // And what it claims now it keeps.
  const auto second = ShardLease::Claim(**region);
  EXPECT_EQ(second->shard(), 1);
  EXPECT_EQ((*region)->Owner(0), Self());
}

TEST_F(KnownLimitTest, AForkedCopyOfAGuardChangesNothingOfItsParents) {
  const ShardLease lease = ClaimOrDie();
  auto guard = MakeGuard(lease, kStart);
  Admission running = guard->Admit({.arrived = kStart}, kStart);
  std::vector<Permit> permits;
  for (int64_t i = 1; i < guard->limit(); ++i) {
    permits.push_back(guard->Admit({.arrived = kStart}, kStart).permit);
  }
  auto waiter = std::make_unique<Waiter>();
  ASSERT_EQ(guard->Admit({.arrived = kStart}, *waiter, kStart).decision.verdict,
            Verdict::kQueue);
  const Snapshot before = Read(*region_);
  const int64_t held = region_->places.sum();
  Child child([&](const Child::Meet&) {
    running.permit = Permit();
    permits.clear();
    waiter.reset();
    guard.reset();
  });
  EXPECT_EQ(child.Join(), 0);
  const Snapshot after = Read(*region_);
  EXPECT_EQ(after.inflight, before.inflight);
  EXPECT_EQ(after.waiting, before.waiting);
  EXPECT_EQ(after.by_class, before.by_class);
  EXPECT_EQ(region_->places.sum(), held);
}

TEST_F(LeaseTest, FiveHundredAndTwelveWorkersFitAndOneMoreIsToldSo) {
  std::deque<ShardLease> leases;
  for (int i = 0; i < kAll; ++i) leases.push_back(ClaimOrDie());
  const auto more = ShardLease::Claim(*region_);
  ASSERT_FALSE(more.ok());
  EXPECT_THAT(more.error().message, HasSubstr("all 512 shards"));
  leases.pop_front();
  EXPECT_TRUE(ShardLease::Claim(*region_).ok());
}

TEST_F(LeaseTest, ClaimTakesTheShardOfADeadWorkerWhenAllAreTaken) {
  std::deque<ShardLease> leases;
  for (int i = 0; i < kAll - 1; ++i) leases.push_back(ClaimOrDie());
  Child last([this](const Child::Meet& meet) {
    const ShardLease lease = ClaimOrDie();
    meet();
  });
  ASSERT_TRUE(last.Await());
  EXPECT_FALSE(ShardLease::Claim(*region_).ok());
  last.KillOnly();
  EXPECT_TRUE(ShardLease::Claim(*region_).ok());
}

TEST_F(KnownLimitTest, ReclaimGivesBackInflightExactlyTenTimes) {
  const ShardLease lease = ClaimOrDie();
  const auto guard = MakeGuard(lease, kStart);
  Admission mine = guard->Admit({.arrived = kStart}, kStart);
  ASSERT_TRUE(mine.permit);
  Instant now = kStart;
  Reclaimer reclaimer(*region_);
  for (int64_t kill = 1; kill <= 10; ++kill) {
    Child worker = Holder(static_cast<int>(3 * kill));
    ASSERT_TRUE(worker.Await());
    ASSERT_EQ(Inflight(), 1 + 3 * kill);
    EXPECT_EQ(reclaimer.Run(now += 1s), 0) << "while it lives";
    worker.KillOnly();

    EXPECT_EQ(reclaimer.Run(now += 1s), 3 * kill);

    EXPECT_EQ(Inflight(), 1);
    EXPECT_EQ(guard->inflight(), 1);
    EXPECT_EQ(reclaimer.Run(now += 1s), 0) << "again";
  }
  // 3 * (1 + ... + 10)
  EXPECT_EQ(Read(*region_)[Counter::reclaimed_total], 165U);
  EXPECT_EQ(region_->header.shards_used.load(), 2) << "shards are used again";
  guard->Finish(std::move(mine.permit), Outcome::kOk, now);
  EXPECT_EQ(Inflight(), 0);
}

TEST_F(KnownLimitTest, WhatADeadWorkerHeldCanBeHeldByOthers) {
  const auto limit = static_cast<int>(region_->published.slots.load());
  ASSERT_GE(limit, 100);
  Child worker = Holder(limit);
  ASSERT_TRUE(worker.Await());
  const ShardLease lease = ClaimOrDie();
  const auto guard = MakeGuard(lease, kStart);
  ASSERT_EQ(guard->Admit({.arrived = kStart}, kStart).decision.reason,
            Reason::kLimit);
  worker.KillOnly();
  Instant now = kStart + 1s;
  ASSERT_EQ(Reclaimer(*region_).Run(now), limit);

  std::vector<Permit> permits;
  for (int i = 0; i < limit; ++i) {
    Admission admission = guard->Admit({.arrived = now}, now);
    ASSERT_TRUE(admission.permit) << i;
    permits.push_back(std::move(admission.permit));
  }
  EXPECT_EQ(guard->Admit({.arrived = now}, now).decision.verdict,
            Verdict::kShed);
}

TEST_F(KnownLimitTest, ManyReclaimersTakeBackOnce) {
  constexpr int kReclaimers = 6;
  for (int round = 0; round < 10; ++round) {
    Child worker = Holder(50);
    ASSERT_TRUE(worker.Await());
    std::deque<Child> reclaimers;
    for (int i = 0; i < kReclaimers; ++i) {
      reclaimers.emplace_back([this](const Child::Meet& meet) {
        Reclaimer reclaimer(*region_);
        meet();
        region_->flags.level.fetch_add(reclaimer.Run(kStart));
      });
    }
    for (Child& reclaimer : reclaimers) ASSERT_TRUE(reclaimer.Await());
    worker.KillOnly();
    for (Child& reclaimer : reclaimers) reclaimer.Release();
    for (Child& reclaimer : reclaimers) EXPECT_EQ(reclaimer.Join(), 0);

    EXPECT_EQ(region_->flags.level.exchange(0), 50);
    EXPECT_EQ(Inflight(), 0);
    EXPECT_EQ(Held(), 0);
  }
}

TEST_F(LeaseTest, ThreadsMayClaimReleaseReclaimAndReadAtOnce) {
  constexpr int kThreads = 4;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Reclaimer reclaimer(*region_);
      for (int turn = 0; turn < 100; ++turn) {
        const auto lease = ShardLease::Claim(*region_);
        if (!lease) {
          ++failures;
          continue;
        }
        // Were it claimed twice at a time, somebody's count would be lost.
        auto& mine = region_->shards[static_cast<size_t>(lease->shard())];
        auto& count = mine.counters[0];
        count.store(count.load(std::memory_order_relaxed) + 1,
                    std::memory_order_relaxed);
        reclaimer.Run(kStart + turn * 1s);
        if (Read(*region_).workers.size() > kThreads) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Read(*region_).counters[0], 400U);
  EXPECT_EQ(Read(*region_).workers.size(), 0U);
}

TEST_F(LeaseTest, ReclaimerLooksOnlyWhenItIsDue) {
  Reclaimer reclaimer(*region_);
  reclaimer.Run(kStart);
  EXPECT_EQ(reclaimer.next(), kStart + Reclaimer::kInterval);
  ASSERT_TRUE(region_->ClaimShard({.pid = ::getpid(), .start = 1}));
  region_->shards[0].inflight.store(7);
  EXPECT_EQ(reclaimer.Run(reclaimer.next() - 1ns), 0);
  EXPECT_EQ(reclaimer.Run(reclaimer.next()), 7);
}

TEST_F(LeaseTest, ShardWhoseClaimerDiedInTheActIsFound) {
  // Owned, but not yet counted in shards_used.
  const ProcessId dead{.pid = ::getpid(), .start = 1};
  region_->ClaimShard(dead);
  region_->header.shards_used.store(0);
  Reclaimer(*region_).Run(kStart);
  EXPECT_EQ(region_->Owner(0).pid, 0);
}

TEST_F(LeaseTest, NobodyIsTakenForDeadFromAnotherNamespace) {
  ASSERT_TRUE(region_->ClaimShard({.pid = ::getpid(), .start = 1}));
  region_->shards[0].inflight.store(7);
  region_->header.namespaces.store(Namespaces() + 1);
  EXPECT_EQ(Reclaimer(*region_).Run(kStart), 0);
  EXPECT_EQ(region_->shards[0].inflight.load(), 7);
}

// A worker's life in a few milliseconds: admissions, waiting, completions and
// steps of the law.
void Work(Guard& guard) {
  std::array<Waiter, 6> waiters;
  std::vector<Permit> permits;
  Instant now = kStart;
  for (Waiter& waiter : waiters) {
    Admission admission =
        guard.Admit({.client = 5, .arrived = now}, waiter, now);
    if (admission.permit) permits.push_back(std::move(admission.permit));
    now += 3ms;
  }
  while (!permits.empty()) {
    guard.Finish(std::move(permits.back()), Outcome::kOk, now += 10ms);
    permits.pop_back();
    while (Waiter* waiter = guard.NextDecided()) {
      if (Permit permit = waiter->TakePermit()) {
        permits.push_back(std::move(permit));
      }
    }
    guard.Tick(now += 10ms);
  }
}

// Goal: a worker may die between any two instructions, also while it steps the
// law, and the others lose nothing and wait for nothing.
// Method: a worker is single-stepped through all of Work().  Every few steps
// (a prime, so that loops do not hide points) the region is copied as it would
// be found after a kill there, and the others' work is done on the copy.
TEST_F(LeaseTest, WorkerKilledAtAnyInstructionLeavesTheOthersWhole) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "there is one thread; its steps would be the sanitizer's";
#endif
  constexpr int64_t kStepsBetween = 61;
  const ShardLease survivor = ClaimOrDie();
  std::optional<ShardLease> lease;
  std::unique_ptr<Guard> guard;
  TracedChild worker(
      [&] {
        lease = ClaimOrDie();
        guard = MakeGuard(*lease, kStart);
      },
      [&] { Work(*guard); });
  const int dying = survivor.shard() + 1;
  HeapRegion copy(policy_, kStart);
  int64_t points = 0;
  int64_t turns_held = 0;
  int64_t most_taken_back = 0;
  for (int64_t step = 0; worker.StepInstruction(); ++step) {
    if (step % kStepsBetween != 0) continue;
    ++points;
    std::memcpy(static_cast<void*>(copy.get()), region_.get(), sizeof(Region));
    if (copy->law.turn.load() == dying + 1) ++turns_held;
    const int64_t before = copy->shards[1].inflight.load();

    const int64_t taken_back = copy->Reclaim(dying, copy->Owner(dying), Self());

    const std::string where = "at step " + std::to_string(step);
    ASSERT_EQ(taken_back, before) << where;
    most_taken_back = std::max(most_taken_back, taken_back);
    ASSERT_EQ(copy->law.turn.load(), 0) << where;
    ASSERT_EQ(copy->places.sum(), 0) << where;
    const Instant now = kStart + 1s;
    auto others = Guard::Make(std::make_shared<Policy>(policy_), *copy,
                              survivor.shard(), now);
    ASSERT_TRUE(others.ok()) << where;
    Admission admission = (*others)->Admit({.arrived = now}, now);
    ASSERT_TRUE(admission.permit) << where;
    ASSERT_EQ(Read(*copy).inflight, 1) << where;
    (*others)->Finish(std::move(admission.permit), Outcome::kOk, now + 10ms);
    ASSERT_EQ(Read(*copy).inflight, 0) << where;
  }
  EXPECT_GT(points, 100);
  EXPECT_GT(turns_held, 0) << "no point lay within a step of the law";
  EXPECT_GT(most_taken_back, 1);
}

// The same once in earnest: what the copies stand for.
TEST_F(LeaseTest, WorkerKilledWhileItStepsTheLawIsReclaimed) {
  const ShardLease survivor = ClaimOrDie();
  std::optional<ShardLease> lease;
  std::unique_ptr<Guard> guard;
  TracedChild worker(
      [&] {
        lease = ClaimOrDie();
        guard = MakeGuard(*lease, kStart);
      },
      [&] { Work(*guard); });
  while (region_->law.turn.load() == 0 && worker.StepInstruction()) {
  }
  ASSERT_EQ(region_->law.turn.load(), survivor.shard() + 2);
  const int64_t inflight = Inflight();
  worker.Kill();
  EXPECT_EQ(Reclaimer(*region_).Run(kStart), inflight);
  EXPECT_EQ(region_->law.turn.load(), 0);
  EXPECT_EQ(Inflight(), 0);
}

TEST_F(KnownLimitTest, TheLawGoesOnAfterItsStepperDied) {
  const ShardLease lease = ClaimOrDie();
  const auto guard = MakeGuard(lease, kStart);
  Child stepper([this](const Child::Meet& meet) {
    const ShardLease its = ClaimOrDie();
    region_->law.turn.store(its.shard() + 1);
    meet();
  });
  ASSERT_TRUE(stepper.Await());
  const auto work = [&](Instant from) {
    for (int i = 0; i < 1000; ++i) {
      const Instant now = from + i * 5ms;
      Admission admission = guard->Admit({.arrived = now}, now);
      guard->Finish(std::move(admission.permit), Outcome::kOk, now + 4ms);
    }
    return Read(*region_)[Counter::rounds_total];
  };
  EXPECT_EQ(work(kStart), 0U) << "the turn is taken";
  stepper.KillOnly();
  Reclaimer(*region_).Run(kStart + 10s);
  EXPECT_GT(work(kStart + 10s), 0U);
}

}  // namespace
}  // namespace weir::shm
