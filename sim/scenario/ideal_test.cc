#include "weir/scenario/ideal.h"

#include <gtest/gtest.h>

#include <numeric>

namespace weir::scenario {
namespace {

using std::chrono::milliseconds;

std::vector<double> Steps(
    std::initializer_list<std::pair<size_t, double>> parts) {
  std::vector<double> steps;
  for (const auto& [count, value] : parts) {
    steps.insert(steps.end(), count, value);
  }
  return steps;
}

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.);
}

size_t Overloaded(const Ideal& ideal) {
  return static_cast<size_t>(
      std::count(ideal.overload.begin(), ideal.overload.end(), true));
}

TEST(IdealTest, BelowCapacityEverythingIsServed) {
  const Ideal ideal =
      ComputeIdeal(Steps({{100, 8}}), Steps({{100, 10}}), milliseconds(500));
  EXPECT_DOUBLE_EQ(Sum(ideal.served), 800);
  EXPECT_EQ(Overloaded(ideal), 0u);
}

TEST(IdealTest, ABurstThatFitsIntoTheDeadlineIsServedWhole) {
  // 20 steps at 3x leave 400 waiting, 400 ms of work.
  const Ideal ideal = ComputeIdeal(Steps({{10, 5}, {20, 30}, {200, 5}}),
                                   Steps({{230, 10}}), milliseconds(500));
  EXPECT_DOUBLE_EQ(Sum(ideal.served), 50 + 600 + 1000);
  EXPECT_EQ(Overloaded(ideal), 0u);
  EXPECT_DOUBLE_EQ(ideal.served[60], 10);  // Still at work on the rest.
}

TEST(IdealTest, OfAFloodItServesWhatCapacityAllowsWhileItLasts) {
  const Ideal ideal = ComputeIdeal(Steps({{1000, 8}, {1500, 100}, {1000, 8}}),
                                   Steps({{3500, 10}}), milliseconds(500));
  EXPECT_DOUBLE_EQ(Sum(ideal.served), 8000 + 15'000 + 8000);
  EXPECT_EQ(Overloaded(ideal), 1500u);
  EXPECT_FALSE(ideal.overload[999]);
  EXPECT_TRUE(ideal.overload[1000]);
  EXPECT_TRUE(ideal.overload[2499]);
  EXPECT_FALSE(ideal.overload[2500]);
}

TEST(IdealTest, AFloodUntilTheEndIsOverloadUntilTheEnd) {
  const Ideal ideal = ComputeIdeal(Steps({{10, 8}, {100, 100}}),
                                   Steps({{110, 10}}), milliseconds(500));
  EXPECT_DOUBLE_EQ(Sum(ideal.served), 1080);
  EXPECT_EQ(Overloaded(ideal), 100u);
}

TEST(IdealTest, FollowsACapacityThatFalls) {
  const Ideal ideal = ComputeIdeal(
      Steps({{400, 8}}), Steps({{200, 10}, {200, 4}}), milliseconds(100));
  EXPECT_DOUBLE_EQ(Sum(ideal.served), 1600 + 800);
  EXPECT_EQ(Overloaded(ideal), 200u);
}

}  // namespace
}  // namespace weir::scenario
