#include "planning.h"

#include <gtest/gtest.h>

#include <set>

#include "weir/config/units.h"
#include "weir/scenario/capacity.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/world.h"

namespace weir::cli {
namespace {

using namespace std::chrono_literals;
using scenario::Scenario;

// 100 workers of 20 ms are 5000/s an instance; the peak is 19000/s.
Scenario Cluster() {
  Scenario scenario;
  scenario.name = "cluster";
  scenario.deadline = scenario.timeout = 500ms;
  scenario.classes = {{.deadline = 500ms}};
  scenario.routes = {{}};
  scenario.tiers = {
      {.workers = 100,
       .stages = {
           {.name = "cpu",
            .time = {.distribution = scenario::Span::Distribution::kExponential,
                     .mean = 20ms}}}}};
  scenario.phases = {{.name = "day", .duration = 2s, .load = 1.6},
                     {.name = "peak", .duration = 2s, .load = 3.8}};
  return scenario;
}

Trial Play(const Scenario& scenario, int instances, const Variant& variant) {
  const auto played = WithInstances(scenario, instances, variant);
  EXPECT_TRUE(played);
  return {instances,
          {Simulate(*played, sim::FindAlgorithms("weir", nullptr).value()[0],
                    {.seed = 1})}};
}

TEST(PlanningTest, TwoToSpareAtNineteenThousandAreSixClusters) {
  const Scenario scenario = Cluster();
  EXPECT_DOUBLE_EQ(PeakOf(scenario), 19'000);
  EXPECT_DOUBLE_EQ(CapacityOfOne(scenario), 5'000);
  EXPECT_EQ(InstancesFor(19'000, 5'000, 0), 4);
  EXPECT_EQ(InstancesFor(19'000, 5'000, 2), 6);
  EXPECT_EQ(InstancesFor(20'000, 5'000, 0), 4);
  EXPECT_EQ(InstancesFor(20'001, 5'000, 0), 5);
  EXPECT_EQ(InstancesForSites(19'000, 5'000, 2), 8);
  EXPECT_EQ(InstancesForSites(19'000, 5'000, 3), 6);
}

TEST(PlanningTest, InstancesGoAtAnInstantThatCanBeRead) {
  EXPECT_EQ(config::FormatDuration(UsualLoss(20s)), "6667ms");
  EXPECT_EQ(config::FormatDuration(UsualLoss(30s)), "10s");
}

TEST(PlanningTest, TheSimulatorAgreesWithTheArithmetic) {
  const Scenario scenario = Cluster();
  const auto goal = ParseGoal("goodput>=0.99");
  const Variant variant{.lose = 2, .lose_at = 1s};
  EXPECT_FALSE(Play(scenario, 5, variant).Meets(*goal));
  EXPECT_TRUE(Play(scenario, 6, variant).Meets(*goal));
}

TEST(PlanningTest, MoreInstancesGetTheSameLoad) {
  const Scenario scenario = Cluster();
  for (const int instances : {1, 3, 8}) {
    const Scenario more = *WithInstances(scenario, instances, {});
    EXPECT_NEAR(PeakOf(more), 19'000, 1e-6);
    EXPECT_NEAR(CapacityAt(more, {}), 5'000 * instances, 1e-6);
  }
}

TEST(PlanningTest, WhatIsLostIsLostFromThatInstantOn) {
  const Variant site{.sites = 2, .lose_at = 1s};
  const Scenario five = *WithInstances(Cluster(), 5, site);
  EXPECT_NEAR(CapacityAt(five, 999ms), 25'000, 1e-6);
  EXPECT_NEAR(CapacityAt(five, 1s), 10'000, 1e-6);
  EXPECT_FALSE(WithInstances(Cluster(), 1, site));
  EXPECT_FALSE(WithInstances(Cluster(), 2, {.lose = 2}));
}

TEST(PlanningTest, RetriesAndLayersAreThoseThatWereAsked) {
  const Scenario scenario =
      *WithInstances(Cluster(), 4, {.retries = 3, .layers = 2});
  EXPECT_EQ(scenario.retries.count, 3);
  EXPECT_EQ(scenario.retries.layers, 2);
}

TEST(PlanningTest, ScenariosWhoseLoadOrReplicasDependOnTheNumberAreRefused) {
  Scenario scenario = Cluster();
  scenario.phases[0].of_current = true;
  EXPECT_FALSE(WithInstances(scenario, 2, {}));
  scenario = Cluster();
  scenario.tiers[0].changes = {{.at = 1s, .replicas = {0}, .up = false}};
  EXPECT_FALSE(WithInstances(scenario, 2, {}));
}

TEST(PlanningTest, GoalsAreReadWithTheirUnits) {
  const auto goal = ParseGoal("goodput>=0.99, p99<=0.2s,vital>=1");
  ASSERT_TRUE(goal) << goal.error().message;
  ASSERT_EQ(goal->size(), 3u);
  EXPECT_EQ((*goal)[0].metric, "good_ratio");
  EXPECT_EQ((*goal)[1].metric, "latency_p99_ms");
  EXPECT_EQ((*goal)[1].value, 200);
  EXPECT_FALSE((*goal)[1].at_least);
  EXPECT_EQ((*goal)[2].cls, "vital");
  for (const char* text : {"", "goodput", "goodput>0.9", "p99<=200", "speed>=1",
                           "goodput>=x", "goodput>=0.9,"}) {
    EXPECT_FALSE(ParseGoal(text)) << text;
  }
}

// Goal: the fewest are found wherever they are, in few runs.
TEST(PlanningTest, BisectionFindsTheFewestWhereverTheyAre) {
  const auto goal = *ParseGoal("goodput>=0.5");
  for (int needed = 1; needed <= 34; ++needed) {
    int runs = 0;
    std::set<int> tried;
    const Search search = FindFewest(1, 33, goal, [&](int instances) {
      ++runs;
      EXPECT_TRUE(tried.insert(instances).second) << "twice: " << instances;
      Trial trial{instances, std::vector<sim::Outcomes>(1)};
      trial.runs[0].report.all.offered = 1;
      trial.runs[0].report.all.good = instances >= needed ? 1 : 0;
      return trial;
    });
    EXPECT_EQ(search.answer.value_or(34), needed);
    EXPECT_TRUE(search.monotone);
    EXPECT_LE(runs, 9);
  }
}

TEST(PlanningTest, AnAnswerThatDoesNotHoldOneAboveIsTold) {
  const auto goal = *ParseGoal("goodput>=0.5");
  const Search search = FindFewest(1, 9, goal, [&](int instances) {
    Trial trial{instances, std::vector<sim::Outcomes>(1)};
    trial.runs[0].report.all.offered = 1;
    trial.runs[0].report.all.good = instances >= 5 && instances != 6 ? 1 : 0;
    return trial;
  });
  EXPECT_EQ(search.answer, 5);
  EXPECT_FALSE(search.monotone);
}

}  // namespace
}  // namespace weir::cli
