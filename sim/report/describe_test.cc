#include "weir/sim/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "weir/scenario/scenario.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/study.h"

namespace weir::sim_report {
namespace {

using namespace std::chrono_literals;

scenario::Scenario Flood() {
  scenario::Scenario scenario;
  scenario.name = "flood";
  scenario.phases = {{.name = "calm", .duration = 1s, .load = .5},
                     {.name = "flood", .duration = 2s, .load = 4}};
  scenario.classes = {{Criticality::kVital, .1, 500ms},
                      {Criticality::kSheddable, .9, 500ms}};
  scenario.routes.resize(1);
  scenario::Tier& tier = scenario.tiers.emplace_back();
  tier.workers = 4;
  scenario::Stage& stage = tier.stages.emplace_back();
  stage.name = "cpu";
  stage.time.mean = 10ms;
  scenario.deadline = 500ms;
  scenario.timeout = 500ms;
  scenario.bounds = {{.metric = "goodput_ratio", .min = 9.0}};
  return scenario;
}

// What is drawn is what was played: a run with its series, as a page has it.
TEST(DescribeTest, APlayedScenarioBecomesAStudy) {
  const scenario::Scenario scenario = Flood();
  const auto algorithms = sim::FindAlgorithms("weir,fixed,none", nullptr);
  ASSERT_TRUE(algorithms);
  sim::StudyOptions options;
  options.seeds = {1, 2};
  options.bin = 100ms;
  const auto results = sim::RunStudy(scenario, *algorithms, options);

  const Study study = Describe(scenario, {"weir", "fixed", "none"}, {1, 2},
                               results, "weir sim flood.toml");

  ASSERT_EQ(study.algorithms.size(), 3u);
  EXPECT_FALSE(study.algorithms[0].rival);
  EXPECT_TRUE(study.algorithms[1].rival);
  EXPECT_THAT(study.classes, testing::ElementsAre("vital", "sheddable"));
  EXPECT_EQ(study.bin_s, .1);
  ASSERT_GE(study.offered.size(), 30u);
  EXPECT_EQ(study.phases[1].start_s, 1);
  for (const Algorithm& algorithm : study.algorithms) {
    EXPECT_EQ(algorithm.series.good.size(), study.offered.size());
    ASSERT_EQ(algorithm.series.shed.size(), 2u);
    EXPECT_EQ(algorithm.series.shed[1].size(), study.offered.size());
  }
  // Four times what the service can do: somebody is refused, by weir not the
  // vital ones, by none nobody.
  const auto sum = [](const std::vector<double>& values) {
    double all = 0;
    for (const double value : values) all += value;
    return all;
  };
  EXPECT_GT(sum(study.algorithms[0].series.shed[1]), 0);
  EXPECT_EQ(sum(study.algorithms[2].series.shed[1]), 0);
  EXPECT_GT(study.algorithms[0].class_good_ratio[0]->median,
            study.algorithms[0].class_good_ratio[1]->median);
  EXPECT_EQ(study.algorithms[0].figures.count("work_ratio"), 1u);
  // The bound cannot be met: both seeds say so.
  EXPECT_EQ(study.algorithms[0].broken.size(), 2u);
}

}  // namespace
}  // namespace weir::sim_report
