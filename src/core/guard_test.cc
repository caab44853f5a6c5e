#include "weir/guard.h"

#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "weir/snapshot.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(1000)};

// One worker, `places` places.
class GuardTest : public ::testing::Test {
 protected:
  explicit GuardTest(int places = 2) {
    policy_.service = "test";
    policy_.limit_floor = policy_.limit_ceiling = places;
    policy_.resources.push_back({.name = "api"});
    Start();
  }

  // Anew, with policy_ as it is now.
  void Start() {
    guard_.reset();
    region_ = std::make_unique<HeapRegion>(policy_, kStart);
    const int shard = *(*region_)->ClaimShard({.pid = 1, .start = 1});
    guard_ = std::move(*Guard::Make(std::make_shared<Policy>(policy_),
                                    **region_, shard, kStart));
  }

  static Request Of(Criticality criticality, Instant arrived = kStart,
                    Duration budget = milliseconds(500)) {
    return {.criticality = criticality,
            .arrived = arrived,
            .deadline = arrived + budget};
  }

  // Fills all places; the permits are kept in running_.
  void Fill(Duration budget = milliseconds(500)) {
    while (true) {
      Admission a =
          guard_->Admit(Of(Criticality::kImportant, kStart, budget), kStart);
      if (a.decision.verdict != Verdict::kAdmit) break;
      running_.push_back(std::move(a.permit));
    }
    before_ = Read(**region_);
  }

  // With requests that nobody stops waiting for, so that no place lapses.
  void FillForGood() { Fill(std::chrono::hours(1)); }

  void FinishOne(Instant now = kStart + milliseconds(1)) {
    Permit permit = std::move(running_.back());
    running_.pop_back();
    guard_->Finish(std::move(permit), Outcome::kOk, now);
  }

  uint64_t Since(ClassCounter counter, Criticality c) const {
    return Read(**region_)[counter][Index(c)] - before_[counter][Index(c)];
  }

  Policy policy_;
  std::unique_ptr<HeapRegion> region_;
  std::unique_ptr<Guard> guard_;
  std::vector<Permit> running_;
  Snapshot before_;

  void TearDown() override {
    running_.clear();
    guard_.reset();
    const Snapshot after = Read(**region_);
    EXPECT_EQ(after.inflight, 0);
    for (const int64_t waiting : after.waiting) EXPECT_EQ(waiting, 0);
    EXPECT_EQ((*region_)->places.sum(), 0);
  }
};

TEST_F(GuardTest, NeverRunsMoreThanTheLimit) {
  Fill();
  EXPECT_EQ(running_.size(), 2u);
  EXPECT_EQ(guard_->inflight(), 2);
  const Admission a = guard_->Admit(Of(Criticality::kVital), kStart);
  EXPECT_EQ(a.decision.verdict, Verdict::kShed);
  EXPECT_EQ(a.decision.reason, Reason::kLimit);
  EXPECT_FALSE(a.permit);
}

TEST_F(GuardTest, AFreedPlaceGoesToTheMostCriticalThatWaitsLongest) {
  Fill();
  std::list<Waiter> waiters(4);
  auto w = waiters.begin();
  Waiter& sheddable = *w++;
  Waiter& important = *w++;
  Waiter& vital = *w++;
  Waiter& important_later = *w;
  for (const auto& [waiter, criticality] :
       {std::pair(&sheddable, Criticality::kSheddable),
        std::pair(&important, Criticality::kImportant),
        std::pair(&vital, Criticality::kVital),
        std::pair(&important_later, Criticality::kImportant)}) {
    EXPECT_EQ(guard_->Admit(Of(criticality), *waiter, kStart).decision.verdict,
              Verdict::kQueue);
  }
  for (Waiter* expected : {&vital, &important, &important_later, &sheddable}) {
    FinishOne();
    Waiter* const decided = guard_->NextDecided();
    ASSERT_EQ(decided, expected);
    EXPECT_EQ(decided->decision().reason, Reason::kWaited);
    running_.push_back(decided->TakePermit());
    EXPECT_EQ(guard_->NextDecided(), nullptr);
  }
}

// A second worker at a service with one place, which runs a request.  One waits
// in the first worker since kStart + 1 ms, two in the second since 10 ms later.
class GuardWorkersTest : public GuardTest {
 protected:
  GuardWorkersTest() : GuardTest(1) {
    const int shard = *(*region_)->ClaimShard({.pid = 2, .start = 1});
    second_ = std::move(*Guard::Make(std::make_shared<Policy>(policy_),
                                     **region_, shard, kStart));
    running_.push_back(
        second_->Admit(Of(Criticality::kImportant), kStart).permit);
    Wait(*guard_, old_, At(1));
    Wait(*second_, young_, At(11));
    Wait(*second_, younger_, At(12));
  }

  static Instant At(int ms) { return kStart + milliseconds(ms); }

  static void Wait(Guard& guard, Waiter& waiter, Instant now) {
    EXPECT_EQ(guard.Admit(Of(Criticality::kImportant, now), waiter, now)
                  .decision.verdict,
              Verdict::kQueue);
  }

  // Ends what runs, in the second worker; returns who runs there next.
  Waiter* FinishInSecond(Instant now) {
    second_->Finish(std::move(running_.back()), Outcome::kOk, now);
    running_.pop_back();
    return NextInSecond();
  }
  Waiter* NextInSecond() {
    Waiter* const next = second_->NextDecided();
    if (next != nullptr) running_.push_back(next->TakePermit());
    return next;
  }

  std::unique_ptr<Guard> second_;
  Waiter old_;
  Waiter young_;
  Waiter younger_;
};

TEST_F(GuardWorkersTest, AFreedPlaceGoesToWhoWaitsLongestInAnyWorker) {
  EXPECT_EQ(FinishInSecond(At(20)), nullptr);
  guard_->Tick(At(21));
  ASSERT_EQ(guard_->NextDecided(), &old_);
  guard_->Finish(old_.TakePermit(), Outcome::kOk, At(22));
  second_->Tick(At(23));
  EXPECT_EQ(NextInSecond(), &young_);
  EXPECT_EQ(FinishInSecond(At(24)), &younger_);
  running_.clear();
}

TEST_F(GuardWorkersTest, OneThatIsStuckIsWaitedForOnce) {
  EXPECT_EQ(FinishInSecond(At(20)), nullptr);
  second_->Tick(At(22));
  EXPECT_EQ(NextInSecond(), nullptr);
  second_->Tick(At(23));
  EXPECT_EQ(NextInSecond(), &young_);
  EXPECT_EQ(FinishInSecond(At(24)), &younger_);
  guard_->Cancel(old_, At(25));
  running_.clear();
}

TEST_F(GuardTest, APermitThatIsDroppedGivesItsPlaceBack) {
  Fill();
  running_.pop_back();
  EXPECT_EQ(guard_->inflight(), 1);
  EXPECT_EQ(
      Since(ClassCounter::finished_ignored_total, Criticality::kImportant), 1u);
  EXPECT_EQ(guard_->Admit(Of(Criticality::kVital), kStart).decision.verdict,
            Verdict::kAdmit);
}

TEST_F(GuardTest, APermitIsFinishedOnce) {
  Admission a = guard_->Admit(Of(Criticality::kVital), kStart);
  guard_->Finish(std::move(a.permit), Outcome::kOk, kStart + milliseconds(1));
  guard_->Finish(std::move(a.permit), Outcome::kOk, kStart + milliseconds(2));
  Permit never;
  guard_->Finish(std::move(never), Outcome::kOk, kStart + milliseconds(2));
  EXPECT_EQ(guard_->inflight(), 0);
  EXPECT_EQ(Read(**region_)[ClassCounter::finished_ok_total][0], 1u);
}

TEST_F(GuardTest, AWaiterThatIsDestroyedLeavesTheQueue) {
  Fill();
  {
    Waiter waiter;
    ASSERT_EQ(
        guard_->Admit(Of(Criticality::kVital), waiter, kStart).decision.verdict,
        Verdict::kQueue);
    EXPECT_EQ(guard_->waiting(), 1);
  }
  EXPECT_EQ(guard_->waiting(), 0);
  EXPECT_EQ(Since(ClassCounter::shed_cancelled_total, Criticality::kVital), 1u);
}

TEST_F(GuardTest, ADecisionThatNobodyTakesGivesItsPermitBack) {
  Fill();
  {
    Waiter waiter;
    (void)guard_->Admit(Of(Criticality::kVital), waiter, kStart);
    FinishOne();
    EXPECT_EQ(guard_->inflight(), 2);
  }
  EXPECT_EQ(guard_->NextDecided(), nullptr);
  EXPECT_EQ(guard_->inflight(), 1);
}

TEST_F(GuardTest, ACancelledWaiterIsNotDecidedLater) {
  Fill();
  Waiter waiter;
  (void)guard_->Admit(Of(Criticality::kVital), waiter, kStart);
  guard_->Cancel(waiter, kStart);
  guard_->Cancel(waiter, kStart);
  FinishOne();
  EXPECT_EQ(guard_->NextDecided(), nullptr);
  EXPECT_EQ(Since(ClassCounter::shed_cancelled_total, Criticality::kVital), 1u);
}

TEST_F(GuardTest, WhatIsPastItsDeadlineNeverStarts) {
  const Admission a =
      guard_->Admit(Of(Criticality::kVital, kStart - seconds(1)), kStart);
  EXPECT_EQ(a.decision.verdict, Verdict::kShed);
  EXPECT_EQ(a.decision.reason, Reason::kDeadline);
}

TEST_F(GuardTest, WhatWaitsIsShedAtItsDeadlineByTheTimer) {
  Fill();
  Waiter waiter;
  (void)guard_->Admit(Of(Criticality::kVital), waiter, kStart);
  EXPECT_LE(guard_->NextWake(), kStart + milliseconds(500));
  guard_->Tick(kStart + milliseconds(500) - Duration(1));
  EXPECT_EQ(guard_->NextDecided(), nullptr);
  guard_->Tick(guard_->NextWake());
  ASSERT_EQ(guard_->NextDecided(), &waiter);
  EXPECT_EQ(waiter.decision().reason, Reason::kDeadline);
  EXPECT_EQ(guard_->NextWake(), kNever);
}

TEST_F(GuardTest, WhatCannotFinishInTimeLeavesInsteadOfRunning) {
  // Each request takes 100 ms here.
  for (int i = 0; i < 100; ++i) {
    const Instant now = kStart + i * milliseconds(100);
    Admission a = guard_->Admit(Of(Criticality::kVital, now), now);
    guard_->Finish(std::move(a.permit), Outcome::kOk, now + milliseconds(100));
  }
  const Instant now = kStart + seconds(20);
  for (int i = 0; i < 2; ++i) {
    running_.push_back(guard_->Admit(Of(Criticality::kVital, now), now).permit);
  }
  Waiter hopeless;
  Waiter fine;
  (void)guard_->Admit(Of(Criticality::kVital, now, milliseconds(150)), hopeless,
                      now);
  (void)guard_->Admit(Of(Criticality::kVital, now, milliseconds(450)), fine,
                      now);
  FinishOne(now + milliseconds(100));
  ASSERT_EQ(guard_->NextDecided(), &hopeless);
  EXPECT_EQ(hopeless.decision().reason, Reason::kDeadline);
  ASSERT_EQ(guard_->NextDecided(), &fine);
  running_.push_back(fine.TakePermit());
}

TEST_F(GuardTest, AFreePlaceIsUsedEvenByWhatWillHardlyFinishInTime) {
  // Otherwise one slow answer would refuse all that follow, for ever.
  Admission a = guard_->Admit(Of(Criticality::kVital), kStart);
  guard_->Finish(std::move(a.permit), Outcome::kOk, kStart + seconds(10));
  const Instant now = kStart + seconds(11);
  a = guard_->Admit(Of(Criticality::kVital, now), now);
  EXPECT_EQ(a.decision.verdict, Verdict::kAdmit);
  guard_->Finish(std::move(a.permit), Outcome::kOk, now);
}

class GuardResourcesTest : public GuardTest {
 protected:
  void Make(Resource resource) {
    resource.name = "other";
    policy_.resources.push_back(resource);
    Start();
  }
  Decision AdmitOther(Criticality criticality = Criticality::kImportant) {
    Request request = Of(criticality);
    request.resource = 1;
    Admission a = guard_->Admit(request, kStart);
    guard_->Finish(std::move(a.permit), Outcome::kOk, kStart);
    return a.decision;
  }
};

TEST_F(GuardResourcesTest, ExemptRequestsPassAFullServiceUncounted) {
  Make({.exempt = true});
  Fill();
  const Decision decision = AdmitOther();
  EXPECT_EQ(decision.verdict, Verdict::kAdmit);
  EXPECT_EQ(decision.reason, Reason::kExempt);
  EXPECT_EQ(guard_->inflight(), 2);
  EXPECT_EQ(Since(ClassCounter::offered_total, Criticality::kImportant), 0u);
}

TEST_F(GuardResourcesTest, APausedResourceIsShedAndTheOthersAreNot) {
  Make({.paused = true});
  EXPECT_EQ(AdmitOther().reason, Reason::kPaused);
  EXPECT_GT(AdmitOther().retry_after, Duration(0));
  EXPECT_EQ(guard_->Admit(Of(Criticality::kVital), kStart).decision.verdict,
            Verdict::kAdmit);
}

TEST_F(GuardResourcesTest, AnExemptResourceIsNotPaused) {
  Make({.exempt = true, .paused = true});
  EXPECT_EQ(AdmitOther().verdict, Verdict::kAdmit);
}

StageModes ShadowOf(Stage stage) {
  StageModes modes{};
  modes[Index(stage)] = StageMode::kShadow;
  return modes;
}

TEST_F(GuardResourcesTest, AShadowStageCountsWhatItWouldRefuseAndLetsItPass) {
  Make({.paused = true, .stages = ShadowOf(Stage::kSwitch)});
  EXPECT_EQ(AdmitOther(Criticality::kVital).verdict, Verdict::kAdmit);
  EXPECT_EQ(Read(**region_)[ClassCounter::shadow_switch_total][0], 1u);
  EXPECT_EQ(Read(**region_)[ClassCounter::shed_paused_total][0], 0u);
}

TEST_F(GuardResourcesTest, OnlyWhatNoRoomWouldHelpIsRefusedAnyhow) {
  const Request usual = Of(Criticality::kImportant);
  const Request late = Of(Criticality::kImportant, kStart, Duration(0));
  const auto refused = [this](Request request, uint16_t resource) {
    request.resource = resource;
    return guard_->IsRefusedAnyhow(request, kStart);
  };

  Make({.paused = true});
  EXPECT_TRUE(refused(usual, 1));
  EXPECT_TRUE(refused(late, 0));
  EXPECT_FALSE(refused(usual, 0));
  EXPECT_EQ(Read(**region_)[ClassCounter::offered_total][1], 0u);
  // A full service is no reason: it may have room later.
  Fill();
  EXPECT_FALSE(refused(usual, 0));
  running_.clear();

  policy_.resources.pop_back();
  Make({.exempt = true, .paused = true});
  EXPECT_FALSE(refused(late, 1));

  policy_.resources.pop_back();
  Make({.paused = true, .stages = ShadowOf(Stage::kSwitch)});
  EXPECT_FALSE(refused(usual, 1));

  // All of a class that is below the level, as far as it is known.
  (*region_)->flags.overloaded = 1;
  (*region_)->flags.level = 128;
  EXPECT_FALSE(refused(Of(Criticality::kSheddable), 0)) << "it may be a burst";
  (*region_)->published.standing = 1;
  (*region_)->flags.level = 127;
  EXPECT_FALSE(refused(Of(Criticality::kSheddable), 0));
  EXPECT_FALSE(refused(Of(Criticality::kDeferrable), 0));
  (*region_)->flags.level = 128;
  EXPECT_TRUE(refused(Of(Criticality::kSheddable), 0));
  EXPECT_FALSE(refused(Of(Criticality::kDeferrable), 0));
}

// What would have waited ran in time; a count of it would say that a service at
// its capacity refuses nearly everything.
TEST_F(GuardResourcesTest,
       AShadowLimitCountsWhatItWouldRefuseNotWhatWouldWait) {
  for (const bool overloaded : {false, true}) {
    StageModes modes = ShadowOf(Stage::kLimit);
    modes[Index(Stage::kLevel)] = StageMode::kShadow;
    running_.clear();
    policy_.resources.resize(1);
    Make({.stages = modes});
    Fill();
    Region& region = **region_;
    region.flags.overloaded.store(overloaded ? 1 : 0);
    region.published.waiting_bound.store(3);
    const auto counter = overloaded ? ClassCounter::shadow_level_total
                                    : ClassCounter::shadow_limit_total;
    Request request = Of(Criticality::kDeferrable);
    request.resource = 1;
    std::vector<Permit> permits;
    for (uint64_t refused = 0, i = 0; i < 5; ++i) {
      Waiter waiter;
      Admission a = guard_->Admit(request, waiter, kStart);
      EXPECT_EQ(a.decision.verdict, Verdict::kAdmit);
      permits.push_back(std::move(a.permit));
      // Three would wait; the fourth and the fifth find no room to.
      if (i >= 3) ++refused;
      EXPECT_EQ(Since(counter, Criticality::kDeferrable), refused) << i;
    }
    for (Permit& permit : permits) {
      guard_->Finish(std::move(permit), Outcome::kOk, kStart);
    }
  }
}

TEST_F(GuardResourcesTest, AShadowLimitRunsWhatFindsNoRoomAndCountsIt) {
  Make({.stages = ShadowOf(Stage::kLimit)});
  Fill();
  Request request = Of(Criticality::kDeferrable);
  request.resource = 1;
  // One that cannot wait would be refused at once.
  Admission a = guard_->Admit(request, kStart);
  EXPECT_EQ(a.decision.verdict, Verdict::kAdmit);
  EXPECT_EQ(guard_->inflight(), 3);
  EXPECT_EQ(Since(ClassCounter::shadow_limit_total, Criticality::kDeferrable),
            1u);
  // It holds a place: the next one that is finished frees none.
  FinishOne();
  EXPECT_EQ(guard_->Admit(Of(Criticality::kVital), kStart).decision.reason,
            Reason::kLimit);
  guard_->Finish(std::move(a.permit), Outcome::kOk, kStart);
}

TEST_F(GuardResourcesTest, AStageThatIsOffIsNotAsked) {
  StageModes modes{};
  modes[Index(Stage::kSwitch)] = StageMode::kOff;
  modes[Index(Stage::kLimit)] = StageMode::kOff;
  Make({.paused = true, .stages = modes});
  Fill();
  EXPECT_EQ(AdmitOther().verdict, Verdict::kAdmit);
  EXPECT_EQ(guard_->inflight(), 2);
  EXPECT_EQ(Since(ClassCounter::shadow_switch_total, Criticality::kImportant),
            0u);
}

TEST_F(GuardResourcesTest,
       AShadowDeadlineCountsOnceWhatItWouldHaveShedAndKeepsIt) {
  Make({.stages = ShadowOf(Stage::kDeadline)});
  FillForGood();
  Request request = Of(Criticality::kVital);
  request.resource = 1;
  Waiter waiter;
  ASSERT_EQ(guard_->Admit(request, waiter, kStart).decision.verdict,
            Verdict::kQueue);
  const Instant late = kStart + seconds(2);
  // Looked at many times before there is room for it.
  for (int i = 0; i < 5; ++i) {
    guard_->Tick(late);
    Waiter other;
    (void)guard_->Admit(Of(Criticality::kSheddable, late), other, late);
  }
  EXPECT_EQ(guard_->NextDecided(), nullptr);
  FinishOne(late);
  ASSERT_EQ(guard_->NextDecided(), &waiter);
  EXPECT_EQ(waiter.decision().verdict, Verdict::kAdmit);
  running_.push_back(waiter.TakePermit());
  EXPECT_EQ(Since(ClassCounter::shadow_deadline_total, Criticality::kVital),
            1u);
  EXPECT_EQ(Since(ClassCounter::shed_deadline_total, Criticality::kVital), 0u);
}

TEST_F(GuardResourcesTest, ADeadlineStageThatIsOffExpiresNothing) {
  StageModes modes{};
  modes[Index(Stage::kDeadline)] = StageMode::kOff;
  Make({.stages = modes});
  FillForGood();
  Request request = Of(Criticality::kVital, kStart, milliseconds(1));
  request.resource = 1;
  Waiter waiter;
  (void)guard_->Admit(request, waiter, kStart);
  guard_->Tick(kStart + seconds(2));
  EXPECT_EQ(guard_->NextDecided(), nullptr);
  FinishOne(kStart + seconds(2));
  ASSERT_EQ(guard_->NextDecided(), &waiter);
  running_.push_back(waiter.TakePermit());
  EXPECT_EQ(Since(ClassCounter::shadow_deadline_total, Criticality::kVital),
            0u);
}

TEST_F(GuardTest, AClockThatStepsBackIsTakenToStandStill) {
  Admission a = guard_->Admit(Of(Criticality::kVital), kStart + seconds(5));
  guard_->Finish(std::move(a.permit), Outcome::kOk, kStart);
  // A sample of a nanosecond, not of minus five seconds.
  EXPECT_EQ(guard_->inflight(), 0);
  EXPECT_GE((*region_)->published.base_latency.load(), 0);
}

TEST_F(GuardTest, StopShedsAllThatWaits) {
  Fill();
  Waiter first;
  Waiter second;
  (void)guard_->Admit(Of(Criticality::kVital), first, kStart);
  (void)guard_->Admit(Of(Criticality::kSheddable), second, kStart);
  guard_->Stop(kStart);
  int decided = 0;
  while (Waiter* waiter = guard_->NextDecided()) {
    ++decided;
    EXPECT_EQ(waiter->decision().reason, Reason::kShutdown);
  }
  EXPECT_EQ(decided, 2);
}

TEST_F(GuardTest, ANewPolicyKeepsInflightWaitersAndWhatWasLearned) {
  Fill();
  Waiter waiter;
  (void)guard_->Admit(Of(Criticality::kVital), waiter, kStart);
  Policy wider = policy_;
  wider.limit_floor = wider.limit_ceiling = 3;
  wider.resources.insert(wider.resources.begin(), {.name = "first"});
  EXPECT_EQ(guard_->Apply(std::make_shared<Policy>(wider), kStart),
            std::nullopt);
  EXPECT_EQ(guard_->inflight(), 3);
  ASSERT_EQ(guard_->NextDecided(), &waiter);
  EXPECT_EQ(waiter.request().resource, 1);
  running_.push_back(waiter.TakePermit());
}

TEST_F(GuardTest, APolicyThatDoesNotFitChangesNothing) {
  Policy broken = policy_;
  broken.limit_floor = 0;
  EXPECT_TRUE(
      guard_->Apply(std::make_shared<Policy>(broken), kStart).has_value());
  Policy foreign = policy_;
  foreign.service = "other";
  EXPECT_TRUE(
      guard_->Apply(std::make_shared<Policy>(foreign), kStart).has_value());
  EXPECT_EQ(guard_->limit(), 2);
  EXPECT_EQ(guard_->policy().service, "test");
}

TEST_F(GuardTest, ItIsMadeOnlyForAClaimedShardAndItsOwnService) {
  const auto policy = std::make_shared<Policy>(policy_);
  EXPECT_FALSE(Guard::Make(policy, **region_, 5, kStart).ok());
  EXPECT_FALSE(Guard::Make(policy, **region_, -1, kStart).ok());
  EXPECT_FALSE(Guard::Make(policy, **region_, 64, kStart).ok());
  Policy foreign = policy_;
  foreign.service = "other";
  const int shard = *(*region_)->ClaimShard({.pid = 2, .start = 1});
  EXPECT_FALSE(
      Guard::Make(std::make_shared<Policy>(foreign), **region_, shard, kStart)
          .ok());
}

TEST_F(GuardTest, WhoLeavesKeepsAPlaceForAboutAsLongAsTheServiceWorksOn) {
  Fill();
  // Others take 100 ms.
  FinishOne(kStart + milliseconds(100));
  Admission a =
      guard_->Admit(Of(Criticality::kVital), kStart + milliseconds(100));
  ASSERT_EQ(a.decision.verdict, Verdict::kAdmit);
  guard_->Finish(std::move(a.permit), Outcome::kCancelled,
                 kStart + milliseconds(110));
  EXPECT_EQ((*region_)->places.sum(), 2) << "the service is still at it";
  Waiter waiter;
  const Instant now = kStart + milliseconds(111);
  ASSERT_EQ(
      guard_->Admit(Of(Criticality::kVital, now), waiter, now).decision.verdict,
      Verdict::kQueue);
  guard_->Tick(now + milliseconds(300));
  ASSERT_EQ(guard_->NextDecided(), &waiter);
  EXPECT_EQ(waiter.decision().verdict, Verdict::kAdmit);
  running_.push_back(waiter.TakePermit());
}

TEST_F(GuardTest, WhoWasNeverStartedLeavesNothingBehind) {
  Fill();
  Waiter waiter;
  (void)guard_->Admit(Of(Criticality::kVital), waiter, kStart);
  FinishOne();
  guard_->Cancel(waiter, kStart + milliseconds(2));
  EXPECT_EQ((*region_)->places.sum(), guard_->inflight());
}

// A dependency hangs: places of requests that nobody waits for any more, and
// that do not come back, go to others.
TEST_F(GuardTest, PlacesOfRequestsThatHangLapse) {
  Fill();
  Waiter waiter;
  const Instant now = kStart + milliseconds(490);
  ASSERT_EQ(
      guard_->Admit(Of(Criticality::kVital, now), waiter, now).decision.verdict,
      Verdict::kQueue)
      << "for as long as the policy's deadline they may be late";
  guard_->Tick(kStart + milliseconds(800));
  ASSERT_EQ(guard_->NextDecided(), &waiter);
  EXPECT_EQ(waiter.decision().verdict, Verdict::kAdmit);
  running_.push_back(waiter.TakePermit());
  EXPECT_LE((*region_)->places.sum(), 2);
  // They do come back in the end, and nothing is given back twice.
  while (!running_.empty()) FinishOne(kStart + seconds(5));
  EXPECT_EQ((*region_)->places.sum(), 0);
}

TEST_F(GuardTest, AFailureTeachesNothingAndFreesItsPlace) {
  Fill();
  const uint64_t before = (*region_)->published.round.load();
  for (int i = 0; i < 1000; ++i) {
    Permit permit = std::move(running_.back());
    running_.pop_back();
    const Instant now = kStart + milliseconds(1 + i);
    guard_->Finish(std::move(permit), Outcome::kError, now);
    Admission a = guard_->Admit(Of(Criticality::kVital, now), now);
    ASSERT_EQ(a.decision.verdict, Verdict::kAdmit);
    running_.push_back(std::move(a.permit));
  }
  EXPECT_EQ((*region_)->published.capacity.load(), 0);
  EXPECT_GE((*region_)->published.round.load(), before);
}

// A thousand workers of a second each, before which nobody can wait: the limit
// must be found from refusals alone.
TEST(GuardWithoutWaitersTest, RefusalsRaiseTheLimitToo) {
  Policy policy;
  policy.service = "test";
  policy.deadline = seconds(2);
  policy.resources.push_back({.name = "api"});
  HeapRegion region(policy, kStart);
  const int shard = *region->ClaimShard({.pid = 1, .start = 1});
  const auto guard = std::move(
      *Guard::Make(std::make_shared<Policy>(policy), *region, shard, kStart));
  std::deque<std::pair<Instant, Permit>> running;
  Instant now = kStart;
  int late_refusals = 0;
  for (int i = 0; i < 800 * 60; ++i) {
    now += std::chrono::microseconds(1250);
    while (!running.empty() && running.front().first <= now) {
      guard->Finish(std::move(running.front().second), Outcome::kOk, now);
      running.pop_front();
    }
    Admission a =
        guard->Admit({.arrived = now, .deadline = now + seconds(2)}, now);
    if (a.permit) {
      running.emplace_back(now + seconds(1), std::move(a.permit));
    } else {
      late_refusals += i >= 800 * 30;
    }
  }
  EXPECT_EQ(late_refusals, 0);
  for (auto& [end, permit] : running) {
    guard->Finish(std::move(permit), Outcome::kIgnored, now);
  }
}

// Half of the requests wait five seconds for somebody else.
TEST(GuardKindsTest, RequestsThatWaitForOthersLeaveThePlacesToThoseThatDoNot) {
  Policy policy;
  policy.service = "test";
  policy.limit_floor = policy.limit_ceiling = 8;
  policy.resources.push_back({.name = "slow"});
  policy.resources.push_back({.name = "quick"});
  HeapRegion region(policy, kStart);
  const int shard = *region->ClaimShard({.pid = 1, .start = 1});
  const auto guard = std::move(
      *Guard::Make(std::make_shared<Policy>(policy), *region, shard, kStart));
  std::vector<std::unique_ptr<Waiter>> waiters;
  std::vector<Permit> slow;
  const auto slow_request = [](Instant at) {
    return Request{.resource = 0, .arrived = at, .deadline = at + seconds(60)};
  };
  Instant now = kStart;
  const auto take = [&] {
    while (Waiter* waiter = guard->NextDecided()) {
      ASSERT_EQ(waiter->decision().verdict, Verdict::kAdmit);
      slow.push_back(waiter->TakePermit());
    }
  };
  int quick_served = 0;
  for (int i = 0; i < 200; ++i) {
    now += milliseconds(10);
    waiters.push_back(std::make_unique<Waiter>());
    Admission a = guard->Admit(slow_request(now), *waiters.back(), now);
    if (a.permit) slow.push_back(std::move(a.permit));
    Waiter waiter;
    const Request quick{
        .resource = 1, .arrived = now, .deadline = now + seconds(1)};
    a = guard->Admit(quick, waiter, now);
    if (a.permit) {
      ++quick_served;
      guard->Finish(std::move(a.permit), Outcome::kOk, now + milliseconds(1));
    }
    take();
  }
  EXPECT_LE(slow.size(), 7u);
  EXPECT_GE(quick_served, 199) << "the first comes before it is known";
  for (const auto& waiter : waiters) guard->Cancel(*waiter, now);
  for (Permit& permit : slow) {
    guard->Finish(std::move(permit), Outcome::kIgnored, now);
  }
}

// Two workers of one service, each of which ticks when it asked to be woken and
// not before.
class TwoWorkersTest : public ::testing::Test {
 protected:
  void Make(int32_t limit) {
    policy_.service = "test";
    policy_.limit_floor = policy_.limit_ceiling = limit;
    policy_.resources.push_back({.name = "api"});
    region_.emplace(policy_, kStart);
    for (int i = 0; i < 2; ++i) {
      const int shard = *(*region_)->ClaimShard({.pid = i + 1, .start = 1});
      guards_[i] = std::move(*Guard::Make(std::make_shared<Policy>(policy_),
                                          **region_, shard, kStart));
    }
  }
  void Drain(Guard& guard) {
    while (Waiter* waiter = guard.NextDecided()) {
      if (Permit permit = waiter->TakePermit()) {
        running_.push_back(std::move(permit));
      }
    }
  }
  // Timers of those that are not stopped.
  void RunTo(Instant end, bool first_is_stopped = false) {
    std::array<Instant, 2> wake{};
    for (size_t i = 0; i < 2; ++i) wake[i] = guards_[i]->NextWake();
    if (first_is_stopped) wake[0] = kNever;
    while (std::min(wake[0], wake[1]) <= end) {
      const size_t next = wake[0] <= wake[1] ? 0 : 1;
      now_ = std::max(now_, wake[next]);
      guards_[next]->Tick(now_);
      Drain(*guards_[next]);
      wake[next] = guards_[next]->NextWake();
    }
    now_ = end;
  }
  void TearDown() override {
    running_.clear();
    for (auto& guard : guards_) guard->Stop(now_);
    for (auto& guard : guards_) Drain(*guard);
    for (auto& guard : guards_) guard.reset();
    EXPECT_EQ((*region_)->places.sum(), 0);
  }

  Policy policy_;
  std::optional<HeapRegion> region_;
  std::array<std::unique_ptr<Guard>, 2> guards_;
  std::vector<Permit> running_;
  Instant now_ = kStart;
};

// Nine long requests through one worker of two that had a short burst before.
TEST_F(TwoWorkersTest, AnIdleWorkerLeavesItsSparePlacesToTheOther) {
  Make(9);
  for (int i = 0; i < 3; ++i) {
    for (auto& guard : guards_) {
      Admission a = guard->Admit({.arrived = now_}, now_);
      guard->Finish(std::move(a.permit), Outcome::kOk, now_);
    }
  }
  std::array<Waiter, 9> waiters;
  for (Waiter& waiter : waiters) {
    Admission a = guards_[1]->Admit({.arrived = now_}, waiter, now_);
    if (a.permit) running_.push_back(std::move(a.permit));
  }
  RunTo(now_ + milliseconds(20));
  EXPECT_EQ(running_.size(), 9u);
}

// The first one is stopped with all that may wait, and four of ten places.
TEST_F(TwoWorkersTest, AStoppedWorkerThatHoldsTheQueueShedsNoOthersRequests) {
  Make(10);
  std::array<Waiter, 40> stuck;
  for (int i = 0; i < 10; ++i) {
    running_.push_back(guards_[0]->Admit({.arrived = now_}, now_).permit);
  }
  for (Waiter& waiter : stuck) {
    (void)guards_[0]->Admit({.arrived = now_, .deadline = now_ + seconds(100)},
                            waiter, now_);
  }
  // As if it had been stopped in there: six of its places are free, and it
  // does not know yet.
  (*region_)->places.Add(0, -6);
  (*region_)->published.waiting_bound.store(guards_[0]->waiting());
  std::array<Waiter, 20> waiters;
  size_t ran = 0;
  for (Waiter& waiter : waiters) {
    now_ += milliseconds(10);
    Admission a = guards_[1]->Admit(
        {.arrived = now_, .deadline = now_ + seconds(1)}, waiter, now_);
    EXPECT_NE(a.decision.verdict, Verdict::kShed);
    const size_t before = running_.size();
    if (a.permit) running_.push_back(std::move(a.permit));
    RunTo(now_ + milliseconds(5), /*first_is_stopped=*/true);
    if (running_.size() == before) continue;
    ++ran;
    guards_[1]->Finish(std::move(running_.back()), Outcome::kOk, now_);
    running_.pop_back();
    Drain(*guards_[1]);
  }
  EXPECT_EQ(ran, waiters.size());
  (*region_)->places.Add(0, 6);
}

// One that has spent all its room and ends at once.
TEST_F(TwoWorkersTest, WhoLeavesGivesItsPlacesBackThoughItsPermitsAreOut) {
  Make(4);
  for (int i = 0; i < 4; ++i) {
    running_.push_back(guards_[0]->Admit({.arrived = now_}, now_).permit);
  }
  Waiter waits;
  ASSERT_EQ(guards_[0]->Admit({.arrived = now_}, waits, now_).decision.verdict,
            Verdict::kQueue);
  guards_[0]->Leave(now_);
  ASSERT_EQ(guards_[0]->NextDecided(), &waits);
  EXPECT_EQ(waits.decision().reason, Reason::kShutdown);
  EXPECT_EQ((*region_)->places.sum(), 0);
  (*region_)->ReleaseShard(0);
  EXPECT_EQ(*(*region_)->ClaimShard({.pid = 9, .start = 1}), 0);
  (*region_)->places.Add(0, 2);
  // What ends late is not the next owner's.
  running_.clear();
  EXPECT_EQ((*region_)->places.sum(), 2);
  EXPECT_EQ(guards_[0]->Admit({.arrived = now_}, now_).decision.reason,
            Reason::kShutdown);
  EXPECT_EQ(guards_[0]->NextWake(), kNever);
  (*region_)->places.Add(0, -2);
}

// Nothing is asked for after an overload; readers see that.
TEST_F(TwoWorkersTest, WhatIsSaidOfDemandFadesWithoutRequests) {
  Make(2);
  for (int i = 0; i < 20'000; ++i) {
    now_ += Duration(100'000);
    Admission a = guards_[0]->Admit({.arrived = now_}, now_);
    if (a.permit) running_.push_back(std::move(a.permit));
    if (i % 100 == 0 && !running_.empty()) {
      guards_[0]->Finish(std::move(running_.back()), Outcome::kOk, now_);
      running_.pop_back();
    }
  }
  running_.clear();
  ASSERT_GT((*region_)->published.demand.load(), 1000);
  (*region_)->flags.level.store(77);
  for (int i = 0; i < 18; ++i) {
    now_ += seconds(1);
    guards_[0]->Watch({}, now_);
  }
  EXPECT_LT((*region_)->published.demand.load(), 10);
  EXPECT_EQ((*region_)->flags.overloaded.load(), 0);
  EXPECT_EQ((*region_)->flags.level.load(), 0);
}

// Goal: after any sequence of calls the books balance: what was offered was
// admitted, shed or waits; what was admitted was finished or runs; the limit
// is never passed.
// Method: every sequence of six calls out of nine kinds, on one place:
// 9^6 = 531 441.
TEST(GuardSmallWorldTest, TheBooksBalanceAfterEverySequenceOfSixCalls) {
  Policy policy;
  policy.service = "test";
  policy.limit_floor = policy.limit_ceiling = 1;
  policy.resources.push_back({.name = "api"});
  const auto shared = std::make_shared<Policy>(policy);
  HeapRegion region(policy, kStart);
  const int shard = *region->ClaimShard({.pid = 1, .start = 1});
  constexpr int kKinds = 9;
  constexpr int kCalls = 6;
  int sequences = 1;
  for (int i = 0; i < kCalls; ++i) sequences *= kKinds;
  Instant now = kStart;
  uint64_t offered = 0;
  for (int sequence = 0; sequence < sequences; ++sequence) {
    const auto guard = std::move(*Guard::Make(shared, *region, shard, now));
    std::array<Waiter, kCalls> waiters;
    std::array<Permit, 2 * kCalls> permits;
    size_t used = 0;
    size_t taken = 0;
    const auto keep = [&](Permit permit) {
      if (permit) permits[taken++] = std::move(permit);
    };
    int digits = sequence;
    for (int call = 0; call < kCalls; ++call, digits /= kKinds) {
      const int kind = digits % kKinds;
      now += milliseconds(1);
      if (kind < 3) {
        const Request request{.criticality = static_cast<Criticality>(kind),
                              .arrived = now,
                              .deadline = now + milliseconds(3 + 2 * kind)};
        Admission a = guard->Admit(request, waiters[used++], now);
        keep(std::move(a.permit));
        ++offered;
      } else if (kind == 3) {
        keep(guard->Admit({.arrived = now}, now).permit);
        ++offered;
      } else if (kind == 4 && taken > 0) {
        guard->Finish(std::move(permits[--taken]), Outcome::kOk, now);
      } else if (kind == 5 && used > 0) {
        guard->Cancel(waiters[used - 1], now);
      } else if (kind == 6) {
        guard->Tick(now);
      } else if (kind == 7) {
        if (Waiter* waiter = guard->NextDecided()) keep(waiter->TakePermit());
      } else if (kind == 8) {
        guard->Stop(now);
      }
      ASSERT_LE(guard->inflight(), 1) << "sequence " << sequence;
      ASSERT_LE(region->places.sum(), 1) << "sequence " << sequence;
      ASSERT_EQ(region->places.sum(), guard->inflight());
    }
    for (Permit& permit : permits) {
      guard->Finish(std::move(permit), Outcome::kOk, now);
    }
    while (Waiter* waiter = guard->NextDecided()) {
      guard->Finish(waiter->TakePermit(), Outcome::kCancelled, now);
    }
    for (Waiter& waiter : waiters) guard->Cancel(waiter, now);
    while (guard->NextDecided() != nullptr) {
    }
    ASSERT_EQ(guard->inflight(), 0) << "sequence " << sequence;
    ASSERT_EQ(guard->waiting(), 0) << "sequence " << sequence;
  }
  const Snapshot all = Read(*region);
  const auto sum = [&](ClassCounter first, size_t count) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; ++i) {
      for (const uint64_t n : all.by_class[static_cast<size_t>(first) + i])
        total += n;
    }
    return total;
  };
  const uint64_t admitted = sum(ClassCounter::admitted_total, 1);
  EXPECT_EQ(sum(ClassCounter::offered_total, 1), offered);
  EXPECT_EQ(admitted + sum(ClassCounter::shed_paused_total,
                           kReasons - kFirstShedReason),
            offered);
  EXPECT_EQ(sum(ClassCounter::finished_ok_total, kOutcomes), admitted);
}

}  // namespace
}  // namespace weir
