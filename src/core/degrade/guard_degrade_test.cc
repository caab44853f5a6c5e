// What the guard does with a switch, degrade levels and a drill.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "testing/simulated_service.h"
#include "weir/guard.h"
#include "weir/snapshot.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

using Action = Switch::Action;

constexpr Instant kStart{seconds(1000)};

// Two workers of a service of two places: `search` has two degrade levels,
// `pay` none.
class GuardDegradeTest : public ::testing::Test {
 protected:
  GuardDegradeTest() {
    policy_.service = "test";
    policy_.limit_floor = policy_.limit_ceiling = 2;
    policy_.resources.push_back(
        {.name = "search", .degrade = {{"plain"}, {"cached", 1.5}}});
    policy_.resources.push_back({.name = "pay"});
    Start();
  }

  void Start() {
    guards_.clear();
    region_ = std::make_unique<HeapRegion>(policy_, kStart);
    for (int i = 0; i < 2; ++i) {
      const int shard = *(*region_)->ClaimShard({.pid = 1 + i, .start = 1});
      guards_.push_back(std::move(*Guard::Make(
          std::make_shared<Policy>(policy_), **region_, shard, kStart)));
    }
  }

  void Set(uint16_t resource, const Switch& set) {
    (*region_)->resources[resource].by_hand.store(set.Pack());
  }
  void Start(const Drill& drill) {
    (*region_)->flags.drill.store(drill.Pack());
  }

  // Asks, and ends at once what is admitted.
  Decision Ask(uint16_t resource, Instant now, int worker = 0,
               Outcome outcome = Outcome::kOk,
               Duration took = milliseconds(1)) {
    Guard& guard = *guards_[static_cast<size_t>(worker)];
    Admission a = guard.Admit({.resource = resource,
                               .arrived = now,
                               .deadline = now + milliseconds(500)},
                              now);
    if (a.permit) guard.Finish(std::move(a.permit), outcome, now + took);
    return a.decision;
  }

  Policy policy_;
  std::unique_ptr<HeapRegion> region_;
  std::vector<std::unique_ptr<Guard>> guards_;
};

TEST_F(GuardDegradeTest, AnOperatorsPauseRefusesInEveryWorkerForItsTime) {
  Set(1, {.action = Action::kPause, .until = kStart + minutes(10)});
  for (int worker = 0; worker < 2; ++worker) {
    const Decision d = Ask(1, kStart + minutes(4), worker);
    EXPECT_EQ(d.verdict, Verdict::kShed);
    EXPECT_EQ(d.reason, Reason::kPaused);
    EXPECT_EQ(d.retry_after, minutes(6));
    EXPECT_EQ(Ask(0, kStart + minutes(4), worker).verdict, Verdict::kAdmit);
  }
  for (int worker = 0; worker < 2; ++worker) {
    EXPECT_EQ(Ask(1, kStart + minutes(10), worker).verdict, Verdict::kAdmit);
  }
}

TEST_F(GuardDegradeTest, APauseWithoutEndSaysToComeBackInHalfAMinute) {
  Set(1, {.action = Action::kPause});
  EXPECT_EQ(Ask(1, kStart).retry_after, seconds(30));
}

TEST_F(GuardDegradeTest, PolicyAndOperatorPauseEachForItself) {
  policy_.resources[1].paused = true;
  Start();
  Set(1, {.action = Action::kPause, .until = kStart + minutes(1)});
  // The end of the operator's pause is not the end of the policy's.
  EXPECT_EQ(Ask(1, kStart).retry_after, seconds(30));
  Set(1, {});
  EXPECT_EQ(Ask(1, kStart).reason, Reason::kPaused);
}

TEST_F(GuardDegradeTest, ASwitchStageInShadowCountsAndLetsPass) {
  for (Resource& resource : policy_.resources) {
    resource.stages[Index(Stage::kSwitch)] = StageMode::kShadow;
  }
  Start();
  Set(0, {.action = Action::kDegrade, .level = 2});
  Set(1, {.action = Action::kPause});
  EXPECT_EQ(Ask(1, kStart).verdict, Verdict::kAdmit);
  EXPECT_EQ(Ask(0, kStart).degrade, 0);
  const Snapshot s = Read(**region_);
  EXPECT_EQ(s[ClassCounter::shadow_switch_total][1], 1u);
  EXPECT_TRUE(s.resources[0].deaf);
}

TEST_F(GuardDegradeTest, ASwitchOutlivesAReloadOfThePolicy) {
  Set(0, {.action = Action::kDegrade, .level = 2});
  policy_.resources[0].criticality = Criticality::kSheddable;
  for (auto& guard : guards_) {
    ASSERT_FALSE(guard->Apply(std::make_shared<Policy>(policy_), kStart));
  }
  EXPECT_EQ(Ask(0, kStart).degrade, 2);
}

TEST_F(GuardDegradeTest, DegradedRequestsCarryTheLevelAndAreCounted) {
  EXPECT_EQ(Ask(0, kStart).degrade, 0);
  Set(0,
      {.action = Action::kDegrade, .level = 1, .until = kStart + seconds(9)});
  EXPECT_EQ(Ask(0, kStart).degrade, 1);
  EXPECT_EQ(Ask(0, kStart + seconds(9)).degrade, 0);
  // No more than the policy has names for.
  Set(0, {.action = Action::kDegrade, .level = 9});
  EXPECT_EQ(Ask(0, kStart + seconds(9)).degrade, 2);
  Set(1, {.action = Action::kDegrade, .level = 1});
  EXPECT_EQ(Ask(1, kStart + seconds(9)).degrade, 0);
  EXPECT_EQ(Read(**region_)[ClassCounter::degraded_total][1], 2u);
}

TEST_F(GuardDegradeTest, AnOperatorsZeroKeepsTheLadderOut) {
  (*region_)->resources[0].level.store(2);
  EXPECT_EQ(Ask(0, kStart).degrade, 2);
  Set(0, {.action = Action::kDegrade, .level = 0});
  EXPECT_EQ(Ask(0, kStart).degrade, 0);
}

TEST_F(GuardDegradeTest, ARequestThatWaitedCarriesTheLevelOfWhenItRuns) {
  std::vector<Permit> running;
  Guard& guard = *guards_[0];
  for (int i = 0; i < 2; ++i) {
    running.push_back(
        guard.Admit({.resource = 1, .arrived = kStart}, kStart).permit);
  }
  Waiter waiter;
  ASSERT_EQ(guard.Admit({.arrived = kStart}, waiter, kStart).decision.verdict,
            Verdict::kQueue);
  Set(0, {.action = Action::kDegrade, .level = 1});
  guard.Finish(std::move(running[0]), Outcome::kOk, kStart + milliseconds(1));
  ASSERT_EQ(guard.NextDecided(), &waiter);
  EXPECT_EQ(waiter.decision().degrade, 1);
  guard.Finish(waiter.TakePermit(), Outcome::kOk, kStart + milliseconds(2));
  running.clear();
}

// Two workers before a service that answers degraded requests at six tenths of
// the cost, so that 1.3 times its capacity fits; offered that for a minute and
// then half of its capacity.
TEST(DegradeServiceTest, AnOverloadThatLastsDegradesInsteadOfSheddingAndEnds) {
  for (const uint64_t seed : {1, 2, 3}) {
    testing::World world;
    world.seed = seed;
    world.workers = 2;
    world.degrade = {{"plain"}};
    world.degraded_cost = .6;
    world.load = [](double t) { return t < 60 ? 1.3 : .5; };
    testing::SimulatedService service(world);
    const auto run = [&](double to) {
      service.RunTo(to);
      testing::SimulatedService::Tally all;
      for (const auto& tally : service.TakeTallies()) {
        all.offered += tally.offered;
        all.shed += tally.shed;
        all.degraded += tally.degraded;
      }
      return all;
    };
    run(10);
    const auto overloaded = run(60);
    EXPECT_GT(overloaded.degraded, .99 * overloaded.offered) << seed;
    EXPECT_LT(overloaded.shed, .01 * overloaded.offered) << seed;
    run(80);
    const auto calm = run(90);
    EXPECT_EQ(calm.degraded, 0) << seed;
    EXPECT_EQ(calm.shed, 0) << seed;
    EXPECT_EQ(Read(service.region())[Counter::degrade_steps_total], 2u) << seed;
  }
}

TEST(DegradeServiceTest, NothingIsDegradedBelowCapacity) {
  testing::World world;
  world.degrade = {{"plain"}};
  world.degraded_cost = .6;
  world.load = [](double) { return .95; };
  testing::SimulatedService service(world);
  service.RunTo(120);
  EXPECT_EQ(Read(service.region())[Counter::degrade_steps_total], 0u);
}

TEST_F(GuardDegradeTest, ADrillDegradesItsShareAndCountsBothSides) {
  Start(Drill{.row = 0,
              .level = 2,
              .share = Drill::kWhole / 4,
              .until = kStart + minutes(1)});
  Instant now = kStart;
  uint64_t drilled = 0;
  for (int i = 0; i < 2000; ++i, now += milliseconds(2)) {
    const uint8_t level = Ask(0, now, i % 2).degrade;
    ASSERT_TRUE(level == 0 || level == 2);
    drilled += level == 2;
    EXPECT_EQ(Ask(1, now, i % 2).degrade, 0);
  }
  EXPECT_NEAR(static_cast<double>(drilled), 500, 100);
  const auto counts = Read(**region_).drilled;
  const auto& side = counts[static_cast<size_t>(DrillSide::kDrilled)];
  const auto& control = counts[static_cast<size_t>(DrillSide::kControl)];
  EXPECT_EQ(side.started, drilled);
  EXPECT_EQ(side.ok, drilled);
  EXPECT_EQ(control.ok, 2000 - drilled);
  EXPECT_EQ(side.latency_us, drilled * 1000);
}

TEST_F(GuardDegradeTest, ADrillTellsLateFromBrokenFromGone) {
  Start(Drill{.row = 0,
              .level = 1,
              .share = Drill::kWhole,
              .until = kStart + minutes(1)});
  Ask(0, kStart, 0, Outcome::kOk);
  Ask(0, kStart + seconds(1), 0, Outcome::kOk, milliseconds(501));
  Ask(0, kStart + seconds(2), 0, Outcome::kError);
  Ask(0, kStart + seconds(3), 0, Outcome::kTimedOut);
  Ask(0, kStart + seconds(4), 0, Outcome::kCancelled);
  Ask(0, kStart + seconds(5), 0, Outcome::kIgnored);
  const auto side =
      Read(**region_).drilled[static_cast<size_t>(DrillSide::kDrilled)];
  EXPECT_EQ(side.started, 6u);
  EXPECT_EQ(side.ok, 1u);
  EXPECT_EQ(side.late, 1u);
  EXPECT_EQ(side.error, 2u);
  EXPECT_EQ(side.other, 2u);
}

TEST_F(GuardDegradeTest, ADrillEndsByItselfInTime) {
  Start(Drill{.row = 0,
              .level = 1,
              .share = Drill::kWhole,
              .until = kStart + seconds(1)});
  EXPECT_EQ(Ask(0, kStart).degrade, 1);
  EXPECT_EQ(Ask(0, kStart + seconds(1)).degrade, 0);
  EXPECT_EQ(Read(**region_)[Counter::drills_stopped_total], 0u);
}

TEST_F(GuardDegradeTest, AnOverloadEndsADrillForGood) {
  Start(Drill{.row = 0,
              .level = 1,
              .share = Drill::kWhole,
              .until = kStart + minutes(1)});
  EXPECT_EQ(Ask(0, kStart).degrade, 1);
  (*region_)->flags.overloaded.store(1);
  EXPECT_EQ(Ask(0, kStart + milliseconds(1)).degrade, 0);
  (*region_)->flags.overloaded.store(0);
  EXPECT_EQ(Ask(0, kStart + milliseconds(2)).degrade, 0);
  EXPECT_EQ(Read(**region_)[Counter::drills_stopped_total], 1u);
  EXPECT_FALSE(Read(**region_).drill.ActiveAt(kStart));
}

}  // namespace
}  // namespace weir
