// The stages that a policy may add: what each refuses, and that a refusal
// leaves no trace in those before it.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/guard.h"
#include "weir/snapshot.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1000s};

class GuardStagesTest : public ::testing::Test {
 protected:
  GuardStagesTest() {
    policy_.service = "test";
    policy_.limit_floor = policy_.limit_ceiling = 100;
    policy_.resources.push_back({.name = "api"});
    policy_.resources.push_back({.name = "other"});
  }

  void Start() {
    shared_ = std::make_shared<Policy>(policy_);
    region_ = std::make_unique<HeapRegion>(policy_, kStart);
    guard_ = MakeGuard(1);
  }
  std::unique_ptr<Guard> MakeGuard(int pid) {
    const int shard = *(*region_)->ClaimShard({.pid = pid, .start = 1});
    return std::move(*Guard::Make(shared_, **region_, shard, kStart));
  }

  Admission Ask(uint16_t resource = 0, Instant now = kStart) {
    return guard_->Admit({.resource = resource, .arrived = now}, now);
  }
  // The reason of a request that ends at once if it runs.
  Reason Run(uint16_t resource = 0, Instant now = kStart,
             Outcome outcome = Outcome::kOk) {
    Admission a = Ask(resource, now);
    const Reason reason = a.decision.reason;
    guard_->Finish(std::move(a.permit), outcome, now);
    return reason;
  }
  int Passed(int calls, uint16_t resource = 0, Instant now = kStart) {
    int passed = 0;
    for (int i = 0; i < calls; ++i) {
      passed += Run(resource, now) == Reason::kRoom;
    }
    return passed;
  }
  uint64_t Counted(ClassCounter counter) {
    return Read(**region_)[counter][Index(Criticality::kImportant)];
  }
  static QuotaPolicy Calls(int64_t calls) {
    return {
        .rule = {.calls = calls, .kind = Quota::Kind::kFixed, .window = 10s}};
  }

  Policy policy_;
  std::shared_ptr<const Policy> shared_;
  std::unique_ptr<HeapRegion> region_;
  std::unique_ptr<Guard> guard_;
};

TEST_F(GuardStagesTest, AQuotaIsOfItsResourceAndToldAsOne) {
  policy_.resources[0].quota = Calls(3);
  Start();
  EXPECT_EQ(Passed(10), 3);
  EXPECT_EQ(Passed(10, 1), 10);
  const Decision refused = Ask().decision;
  EXPECT_EQ(refused.verdict, Verdict::kShed);
  EXPECT_EQ(refused.reason, Reason::kQuota);
  EXPECT_EQ(refused.retry_after, 10s);
  EXPECT_EQ(Counted(ClassCounter::shed_quota_total), 8u);
  EXPECT_EQ(Passed(10, 0, kStart + 10s), 3);
}

// The original counted after a call had succeeded, so that calls that ran or
// failed were free.
TEST_F(GuardStagesTest, CallsThatRunOrFailCountFromTheirStart) {
  policy_.resources[0].quota = Calls(3);
  Start();
  EXPECT_EQ(Run(0, kStart, Outcome::kError), Reason::kRoom);
  EXPECT_EQ(Run(0, kStart, Outcome::kTimedOut), Reason::kRoom);
  Admission runs = Ask();
  ASSERT_TRUE(runs.permit);
  EXPECT_EQ(Ask().decision.reason, Reason::kQuota);
  guard_->Finish(std::move(runs.permit), Outcome::kOk, kStart);
}

TEST_F(GuardStagesTest, WorkersOfAllProcessesSpendOneQuota) {
  policy_.resources[0].quota = Calls(5);
  Start();
  EXPECT_EQ(Passed(3), 3);
  const auto first = std::exchange(guard_, MakeGuard(2));
  EXPECT_EQ(Passed(9), 2);
}

TEST_F(GuardStagesTest, WhatNoRoomIsFoundForCostsNoCall) {
  policy_.limit_floor = policy_.limit_ceiling = 1;
  policy_.resources[0].quota = Calls(2);
  policy_.system.qps = 2;
  Start();
  Admission runs = Ask(1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Ask().decision.reason, Reason::kLimit);
  }
  guard_->Finish(std::move(runs.permit), Outcome::kOk, kStart);
  EXPECT_EQ(Run(), Reason::kRoom);
  EXPECT_EQ(Run(0, kStart + 2s), Reason::kRoom);
  EXPECT_EQ(Run(0, kStart + 2s), Reason::kQuota);
}

TEST_F(GuardStagesTest, WhatIsShedOrLeavesWhileItWaitsCostsNoCall) {
  policy_.limit_floor = policy_.limit_ceiling = 1;
  policy_.resources[0].quota = Calls(3);
  policy_.system.threads = 3;
  Start();
  Admission runs = Ask();
  const auto inside = [&] { return (*region_)->in_system.sum(); };
  {
    Waiter expires;
    Waiter leaves;
    EXPECT_EQ(guard_
                  ->Admit({.arrived = kStart, .deadline = kStart + 5ms},
                          expires, kStart)
                  .decision.verdict,
              Verdict::kQueue);
    EXPECT_EQ(
        guard_->Admit({.arrived = kStart}, leaves, kStart).decision.verdict,
        Verdict::kQueue);
    EXPECT_EQ(inside(), 3);
    guard_->Tick(kStart + 6ms);
    ASSERT_EQ(guard_->NextDecided(), &expires);
    EXPECT_EQ(expires.decision().reason, Reason::kDeadline);
    EXPECT_EQ(inside(), 2);
    guard_->Cancel(leaves, kStart + 7ms);
    EXPECT_EQ(inside(), 1);
  }
  guard_->Finish(std::move(runs.permit), Outcome::kOk, kStart + 8ms);
  EXPECT_EQ(inside(), 0);
  EXPECT_EQ(Passed(9, 0, kStart + 8ms), 2);
}

TEST_F(GuardStagesTest, WhatWaitsAndThenRunsCountsOnce) {
  policy_.limit_floor = policy_.limit_ceiling = 1;
  policy_.resources[0].quota = Calls(2);
  policy_.system.threads = 5;
  Start();
  Admission runs = Ask();
  Waiter waits;
  (void)guard_->Admit({.arrived = kStart}, waits, kStart);
  guard_->Finish(std::move(runs.permit), Outcome::kOk, kStart + 1ms);
  ASSERT_EQ(guard_->NextDecided(), &waits);
  EXPECT_EQ((*region_)->in_system.sum(), 1);
  guard_->Finish(waits.TakePermit(), Outcome::kOk, kStart + 2ms);
  EXPECT_EQ((*region_)->in_system.sum(), 0);
  EXPECT_EQ(Run(0, kStart + 3ms), Reason::kQuota);
}

TEST_F(GuardStagesTest, ARefusalByTiersOrSystemCostsNoCall) {
  policy_.resources[0].quota = Calls(2);
  policy_.tiers = {.max = 1, .tiers = {{100, 100}}};
  Start();
  EXPECT_EQ(Run(), Reason::kRoom);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Run(), Reason::kTiers);
  EXPECT_EQ(Run(0, kStart + 1s), Reason::kRoom);
  EXPECT_EQ(Run(0, kStart + 2s), Reason::kQuota);
}

TEST_F(GuardStagesTest, TiersLookAtAllResourcesTogether) {
  policy_.tiers = {.max = 10, .tiers = {{50, 50}, {100, 100}}};
  Start();
  EXPECT_EQ(Passed(6, 0), 6);
  EXPECT_EQ(Passed(6, 1), 2);
  const Decision refused = Ask().decision;
  EXPECT_EQ(refused.reason, Reason::kTiers);
  EXPECT_EQ(refused.retry_after, 1s);
}

TEST_F(GuardStagesTest, AStageInShadowCountsAndOneThatIsOffDoesNot) {
  policy_.resources[0].quota = Calls(3);
  policy_.resources[1].quota = Calls(3);
  const size_t quota = Index(Stage::kQuota);
  policy_.resources[0].stages[quota] = StageMode::kShadow;
  policy_.resources[1].stages[quota] = StageMode::kOff;
  Start();
  EXPECT_EQ(Passed(10, 0), 10);
  EXPECT_EQ(Passed(10, 1), 10);
  EXPECT_EQ(Counted(ClassCounter::shadow_quota_total), 7u);
  EXPECT_EQ(Counted(ClassCounter::shed_quota_total), 0u);
}

TEST_F(GuardStagesTest, WhatComesOnALinkTooFarBehindIsRefused) {
  policy_.resources[0].stale = 1s;
  Start();
  const auto reason = [&](Duration behind) {
    Admission a = guard_->Admit({.arrived = kStart, .behind = behind}, kStart);
    return a.decision.reason;
  };
  EXPECT_EQ(reason(0s), Reason::kRoom);
  EXPECT_EQ(reason(1s), Reason::kRoom);
  EXPECT_EQ(reason(1s + 1ns), Reason::kStale);
  EXPECT_EQ(Counted(ClassCounter::shed_stale_total), 1u);
}

TEST_F(GuardStagesTest, SignalsOfTheHostReachTheSystemRuleAndGrowOld) {
  policy_.system.cpu_ratio = .8;
  Start();
  EXPECT_EQ(Run(), Reason::kRoom);
  guard_->Watch({.cpu_ratio = .9}, kStart);
  EXPECT_EQ(Run(), Reason::kSystem);
  EXPECT_EQ(Run(0, kStart + 3s), Reason::kSystem);
  EXPECT_EQ(Run(0, kStart + 4s), Reason::kRoom) << "old news is no news";
}

// The SRE book's signal: smoothed active threads, over processors.
TEST_F(GuardStagesTest, AnExecutorThatStaysFullRefusesAndABurstPasses) {
  policy_.limit_floor = policy_.limit_ceiling = 16;
  policy_.system.executor_load = 4;
  Start();
  const auto other = MakeGuard(2);
  // Eight run for 200 ms, a burst of twice the threshold.
  std::vector<Permit> runs;
  const auto start = [&](Guard& guard, Instant now) {
    Admission a = guard.Admit({.arrived = now}, now);
    ASSERT_TRUE(a.permit) << Name(a.decision.reason);
    runs.push_back(std::move(a.permit));
  };
  for (int i = 0; i < 8; ++i) start(*guard_, kStart);
  EXPECT_EQ(Run(0, kStart + 200ms), Reason::kRoom);
  // They stay, so the average passes four within a second; the other worker
  // knows of them as well.
  EXPECT_EQ(Run(0, kStart + 500ms), Reason::kRoom);
  for (Instant now = kStart + 500ms; now < kStart + 1500ms; now += 20ms) {
    Run(0, now);
    other->Finish(other->Admit({.arrived = now}, now).permit, Outcome::kOk,
                  now);
  }
  EXPECT_EQ(Run(0, kStart + 1500ms), Reason::kSystem);
  EXPECT_EQ(other->Admit({.arrived = kStart + 1500ms}, kStart + 1500ms)
                .decision.reason,
            Reason::kSystem);
  for (Permit& permit : runs) {
    guard_->Finish(std::move(permit), Outcome::kOk, kStart + 1600ms);
  }
  EXPECT_EQ(Run(0, kStart + 4s), Reason::kRoom);
}

TEST_F(GuardStagesTest, ABurstPassesAWorkerThatWasIdle) {
  policy_.system.executor_load = 4;
  Start();
  const auto other = MakeGuard(2);
  std::vector<Permit> runs;
  for (int i = 0; i < 8; ++i) runs.push_back(Ask(0, kStart + 60s).permit);
  const Instant now = kStart + 60s + 1ms;
  Admission first = other->Admit({.arrived = now}, now);
  EXPECT_EQ(first.decision.reason, Reason::kRoom);
  other->Finish(std::move(first.permit), Outcome::kOk, now);
  for (Permit& permit : runs) {
    guard_->Finish(std::move(permit), Outcome::kOk, now);
  }
}

// A queue before the executor is not load of the executor, whichever worker's
// it is.
TEST_F(GuardStagesTest, WhatWaitsIsNoLoadOfTheExecutor) {
  policy_.limit_floor = policy_.limit_ceiling = 2;
  policy_.system.executor_load = 3;
  Start();
  const auto other = MakeGuard(2);
  std::array<Waiter, 16> waiters;
  std::vector<Permit> runs;
  for (int i = 0; i < 2; ++i) runs.push_back(Ask().permit);
  // Two run and five wait, for as long as the average remembers.
  size_t used = 0;
  for (; used < 5; ++used) {
    ASSERT_EQ(guard_->Admit({.arrived = kStart}, waiters[used], kStart)
                  .decision.verdict,
              Verdict::kQueue);
  }
  for (Instant now = kStart; now < kStart + 3s; now += 50ms) {
    EXPECT_EQ(other->Admit({.arrived = now}, now).decision.reason,
              Reason::kLimit);
  }
  const Instant later = kStart + 20s;
  EXPECT_NE(
      guard_->Admit({.arrived = later}, waiters[used], later).decision.reason,
      Reason::kSystem);
  guard_->Stop(later);
  while (guard_->NextDecided() != nullptr) {
  }
  for (Permit& permit : runs) {
    guard_->Finish(std::move(permit), Outcome::kOk, later);
  }
}

TEST_F(GuardStagesTest, ADeadWorkersRequestsLeaveTheSystemRule) {
  policy_.system.threads = 1;
  policy_.system.robust = true;
  Start();
  auto dies = MakeGuard(2);
  Admission runs = dies->Admit({.arrived = kStart}, kStart);
  ASSERT_TRUE(runs.permit);
  EXPECT_EQ(Run(), Reason::kSystem);
  (*region_)->Reclaim(1, {.pid = 2, .start = 1}, {.pid = 1, .start = 1});
  EXPECT_EQ(Run(), Reason::kRoom);
  dies->Leave(kStart);
}

TEST_F(GuardStagesTest, ACalendarQuotaCountsOnceItKnowsTheDay) {
  policy_.resources[0].quota =
      QuotaPolicy{.rule = {.calls = 2, .kind = Quota::Kind::kCalendar}};
  Start();
  EXPECT_EQ(Passed(5), 5);
  guard_->SetPeriod(0, {.number = 20'000, .end = kStart + 1h});
  EXPECT_EQ(Passed(5), 2);
  const Decision refused = Ask().decision;
  EXPECT_EQ(refused.reason, Reason::kQuota);
  EXPECT_EQ(refused.retry_after, 1h);
  // The next day begins to the nanosecond, before the host says so.
  EXPECT_EQ(Passed(5, 0, kStart + 1h - 1ns), 0);
  EXPECT_EQ(Passed(5, 0, kStart + 1h), 2);
  guard_->SetPeriod(0, {.number = 20'001, .end = kStart + 25h});
  EXPECT_EQ(Passed(5, 0, kStart + 2h), 0);
}

TEST_F(GuardStagesTest, AReloadKeepsWhatWasCounted) {
  policy_.resources[0].quota = Calls(3);
  policy_.tiers = {.max = 100, .tiers = {{100, 100}}};
  Start();
  EXPECT_EQ(Passed(9), 3);
  policy_.resources[0].quota = Calls(5);
  policy_.tiers->max = 50;
  ASSERT_FALSE(guard_->Apply(std::make_shared<Policy>(policy_), kStart));
  EXPECT_EQ(Passed(9), 2);
  EXPECT_EQ(Passed(90, 1), 45) << "5 had come so far";
}

TEST_F(GuardStagesTest, FewerCallsAndBackInOneWindowGiveNoneAnew) {
  policy_.resources[0].quota = Calls(100);
  policy_.client_quota = ClientQuotas::Config{.calls = 100, .window = 10s};
  Start();
  const auto limit = [&](int64_t calls) {
    policy_.resources[0].quota = Calls(calls);
    policy_.client_quota->calls = calls;
    ASSERT_FALSE(guard_->Apply(std::make_shared<Policy>(policy_), kStart));
  };
  EXPECT_EQ(Passed(20), 20);
  limit(10);
  EXPECT_EQ(Passed(50), 0);
  limit(100);
  EXPECT_EQ(Passed(200), 80);
}

// Every stage that counts, over 4 s of twice what it lets pass.
class EveryStage {
 public:
  static constexpr int kPerSecond = 50;
  EveryStage() {
    policy_.service = "test";
    for (const char* name :
         {"quota", "sliding", "clients", "tiers", "system"}) {
      Resource resource{.name = name};
      for (const Stage stage : {Stage::kQuota, Stage::kTiers, Stage::kSystem}) {
        resource.stages[Index(stage)] = StageMode::kOff;
      }
      policy_.resources.push_back(resource);
    }
    const auto on = [&](size_t resource, Stage stage) {
      policy_.resources[resource].stages[Index(stage)] = StageMode::kEnforce;
    };
    const auto quota = [](Quota::Kind kind) {
      return QuotaPolicy{
          .rule = {.calls = kPerSecond, .kind = kind, .window = 1s}};
    };
    policy_.resources[0].quota = quota(Quota::Kind::kFixed);
    policy_.resources[1].quota = quota(Quota::Kind::kSliding);
    policy_.client_quota =
        ClientQuotas::Config{.calls = kPerSecond, .window = 1s};
    policy_.tiers = {.max = kPerSecond, .tiers = {{60, 50}, {100, 100}}};
    policy_.system.qps = kPerSecond;
    for (size_t i = 0; i < 3; ++i) on(i, Stage::kQuota);
    on(3, Stage::kTiers);
    on(4, Stage::kSystem);
  }

  // Which of the requests pass, as a word of bits for each resource.  `apart`:
  // from request to request of all resources in turn.
  std::vector<bool> Run(Instant start, Duration apart, int requests,
                        int reloads = 0) {
    HeapRegion region(policy_, start);
    const int shard = *region->ClaimShard({.pid = 1, .start = 1});
    auto policy = std::make_shared<Policy>(policy_);
    const auto guard = std::move(*Guard::Make(policy, *region, shard, start));
    std::vector<bool> passed;
    Instant now = start;
    for (int i = 0; i < requests; ++i, now += apart) {
      if (reloads > 0 && i % (requests / reloads) == 0) {
        EXPECT_FALSE(guard->Apply(std::make_shared<Policy>(policy_), now));
      }
      for (uint16_t r = 0; r < policy_.resources.size(); ++r) {
        Admission a = guard->Admit(
            {.resource = r, .client = r == 2 ? 7u : 0u, .arrived = now}, now);
        passed.push_back(a.decision.verdict == Verdict::kAdmit);
        guard->Finish(std::move(a.permit), Outcome::kOk, now);
      }
    }
    counts_ = Read(*region);
    return passed;
  }
  uint64_t Counted(ClassCounter counter) const {
    return (*counts_)[counter][Index(Criticality::kImportant)];
  }
  void Set(StageMode mode) {
    for (Resource& resource : policy_.resources) {
      for (StageMode& of : resource.stages) {
        if (of != StageMode::kOff) of = mode;
      }
    }
  }

 private:
  Policy policy_;
  std::optional<Snapshot> counts_;
};
constexpr Duration kTwice = 1s / (2 * EveryStage::kPerSecond);
constexpr int kFourSeconds = 8 * EveryStage::kPerSecond;

// A monotonic clock begins anywhere, below zero too, and goes anywhere.
TEST(EveryStageTest, DecidesTheSameWhereverTheTimelineBegins) {
  EveryStage stages;
  const auto usual = stages.Run(kStart, kTwice, kFourSeconds);
  EXPECT_GT(std::count(usual.begin(), usual.end(), false), kFourSeconds);
  // Whole seconds: windows are cut at those.
  constexpr Duration kFar =
      std::chrono::seconds((int64_t{1} << 62) / 1'000'000'000);
  for (const Instant start :
       {Instant(-kFar), Instant(-2s), Instant(-1h), Instant(kFar)}) {
    EXPECT_EQ(stages.Run(start, kTwice, kFourSeconds), usual)
        << start.time_since_epoch().count();
  }
}

TEST(EveryStageTest, FarBelowItsBoundsNothingIsRefused) {
  EveryStage stages;
  for (const Duration apart : {Duration(500ms), Duration(5s)}) {
    const auto passed = stages.Run(kStart, apart, 100);
    EXPECT_EQ(std::count(passed.begin(), passed.end(), false), 0);
  }
}

TEST(EveryStageTest, TenReloadsASecondChangeNothing) {
  EveryStage stages;
  EXPECT_EQ(stages.Run(kStart, kTwice, kFourSeconds, 40),
            stages.Run(kStart, kTwice, kFourSeconds));
}

TEST(EveryStageTest, InShadowEachRefusesExactlyWhatItWouldEnforced) {
  EveryStage stages;
  (void)stages.Run(kStart, kTwice, kFourSeconds);
  const std::array<uint64_t, 3> shed = {
      stages.Counted(ClassCounter::shed_quota_total),
      stages.Counted(ClassCounter::shed_tiers_total),
      stages.Counted(ClassCounter::shed_system_total)};
  for (const uint64_t count : shed) EXPECT_GT(count, 100u);
  stages.Set(StageMode::kShadow);
  const auto passed = stages.Run(kStart, kTwice, kFourSeconds);
  EXPECT_EQ(std::count(passed.begin(), passed.end(), false), 0);
  EXPECT_EQ(stages.Counted(ClassCounter::shadow_quota_total), shed[0]);
  EXPECT_EQ(stages.Counted(ClassCounter::shadow_tiers_total), shed[1]);
  EXPECT_EQ(stages.Counted(ClassCounter::shadow_system_total), shed[2]);
}

// Below and above one each millisecond, where arithmetic in milliseconds
// rounds to none or to twice as many.
TEST_F(GuardStagesTest, RatesOfAnySizeAreExact) {
  for (const int64_t rate : {1, 999, 1001, 5000, 100'000}) {
    for (const char* what : {"quota", "tiers", "system"}) {
      const std::string stage = what;
      policy_.resources[0].quota.reset();
      policy_.tiers.reset();
      policy_.system.qps = SystemRule::Config::kOff;
      if (stage == "quota") {
        policy_.resources[0].quota = QuotaPolicy{
            .rule = {.calls = rate, .kind = Quota::Kind::kFixed, .window = 1s}};
      } else if (stage == "tiers") {
        policy_.tiers = {.max = rate, .tiers = {{100, 100}}};
      } else {
        policy_.system.qps = static_cast<double>(rate);
      }
      guard_.reset();
      Start();
      int64_t passed = 0;
      for (int64_t i = 0; i < 3 * 3 * rate; ++i) {
        passed +=
            Run(0, kStart + i * Duration(1s) / (3 * rate)) == Reason::kRoom;
      }
      EXPECT_EQ(passed, 3 * rate) << stage << ' ' << rate;
    }
  }
}

}  // namespace
}  // namespace weir
