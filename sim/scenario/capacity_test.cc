#include "weir/scenario/capacity.h"

#include <gtest/gtest.h>

namespace weir::scenario {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// `workers` that take 20 ms of cpu for each request.
Scenario MakeScenario(int32_t workers) {
  Scenario scenario;
  scenario.phases = {{.name = "all", .duration = seconds(100), .load = 2}};
  scenario.classes = {{}};
  scenario.routes = {{}};
  scenario.tiers = {
      {.workers = workers, .stages = {{.time = {.mean = milliseconds(20)}}}}};
  return scenario;
}

TEST(CapacityTest, IsWorkersOverMeanServiceTime) {
  EXPECT_DOUBLE_EQ(CapacityAt(MakeScenario(20), {}), 1000);
}

TEST(CapacityTest, BimodalCountsWithItsMean) {
  Scenario scenario = MakeScenario(16);
  scenario.tiers[0].stages[0].time = {
      .distribution = Span::Distribution::kBimodal,
      .fast = milliseconds(2),
      .slow = milliseconds(82),
      .slow_ratio = .1};
  EXPECT_NEAR(CapacityAt(scenario, {}), 1600, 1e-6);
}

TEST(CapacityTest, StepsAndRampsOfASpeedAndOfWorkers) {
  Scenario scenario = MakeScenario(20);
  scenario.tiers[0].changes = {
      {.at = seconds(10), .workers = 10},
      {.at = seconds(20), .over = seconds(10), .speed = .5}};
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, seconds(10) - Duration(1)), 1000);
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, seconds(10)), 500);
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, seconds(25)), 375);
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, seconds(99)), 250);
}

TEST(CapacityTest, LatencyWithoutAQueueCostsNoCapacity) {
  Scenario scenario = MakeScenario(20);
  scenario.tiers[0].stages.push_back(
      {.kind = Stage::Kind::kIo, .time = {.mean = seconds(1)}});
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, {}), 1000);
}

TEST(CapacityTest, ALockThatAFifthTakesCanBeTheNarrowestPlace) {
  Scenario scenario = MakeScenario(40);
  scenario.routes = {{.name = "locked", .share = .2},
                     {.name = "plain", .share = .8}};
  scenario.tiers[0].stages.push_back({.kind = Stage::Kind::kLock,
                                      .time = {.mean = milliseconds(5)},
                                      .route = 0});
  EXPECT_NEAR(CapacityAt(scenario, {}), 1000, 1e-6);  // 1 / (.2 * 5 ms)
}

TEST(CapacityTest, ALeafCalledTwiceByEachOfTwoCountsFourTimes) {
  Scenario scenario = MakeScenario(20);
  scenario.tiers.push_back(scenario.tiers[0]);
  scenario.tiers.push_back(scenario.tiers[0]);
  scenario.tiers[0].calls = {{.tier = 1, .times = 2}};
  scenario.tiers[1].calls = {{.tier = 2, .times = 2}};
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, {}), 250);
}

TEST(CapacityTest, ReplicasAddUpAndALostOneIsMissed) {
  Scenario scenario = MakeScenario(20);
  scenario.tiers[0].replicas = 4;
  scenario.tiers[0].changes = {
      {.at = seconds(1), .replicas = {0}, .up = false},
      {.at = seconds(2), .replicas = {1, 2}, .speed = .5},
      {.at = seconds(3), .replicas = {0}, .up = true}};
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, {}), 4000);
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, seconds(1)), 3000);
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, seconds(2)), 2000);
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, seconds(3)), 3000);
}

TEST(CapacityTest, PausesTakeTheirShareOfTime) {
  Scenario scenario = MakeScenario(20);
  scenario.tiers[0].pauses = {
      {.length = milliseconds(500), .every = seconds(5)}};
  EXPECT_DOUBLE_EQ(CapacityAt(scenario, {}), 900);
}

TEST(OfferedTest, FollowsTheShapeOfThePhase) {
  Scenario scenario = MakeScenario(20);
  scenario.phases = {{.name = "up",
                      .duration = seconds(10),
                      .shape = Phase::Shape::kRamp,
                      .load = 1,
                      .to = 3},
                     {.name = "waves",
                      .duration = seconds(30),
                      .shape = Phase::Shape::kSquare,
                      .load = .5,
                      .to = 5,
                      .every = seconds(15),
                      .peak_for = seconds(5)}};
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, {}), 1000);
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, seconds(5)), 2000);
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, seconds(10)), 500);
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, seconds(20)), 5000);
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, seconds(25)), 500);
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, seconds(40)), 0);
}

TEST(OfferedTest, HogsComeOnTopWhileTheyLast) {
  Scenario scenario = MakeScenario(20);
  scenario.clients.hogs = {
      {.load = 10, .from = seconds(5), .until = seconds(6)}};
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, seconds(4)), 2000);
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, seconds(5)), 12000);
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, seconds(6)), 2000);
}

TEST(OfferedTest, ALoadOfCurrentCapacityFollowsIt) {
  Scenario scenario = MakeScenario(20);
  scenario.phases[0].of_current = true;
  scenario.tiers[0].changes = {{.at = seconds(50), .time = milliseconds(40)}};
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, seconds(49)), 2000);
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, seconds(50)), 1000);
}

}  // namespace
}  // namespace weir::scenario
