// The stages that a policy may add: what each refuses, and that a refusal
// leaves no trace in those before it.

#include <gtest/gtest.h>

#include <memory>
#include <utility>

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
  const auto inside = [&] { return (*region_)->shards[0].in_system.load(); };
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
  EXPECT_EQ((*region_)->shards[0].in_system.load(), 1);
  guard_->Finish(waits.TakePermit(), Outcome::kOk, kStart + 2ms);
  EXPECT_EQ((*region_)->shards[0].in_system.load(), 0);
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
  dies->Finish(std::move(runs.permit), Outcome::kIgnored, kStart);
  (*region_)->shards[1].held = 0;
  (*region_)->shards[1].in_system = 0;
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

}  // namespace
}  // namespace weir
