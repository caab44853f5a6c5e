#include "weir/scenario/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "weir/scenario/service_time.h"

namespace weir::scenario {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Scenario MakeScenario(std::vector<Phase> phases) {
  Scenario scenario;
  scenario.phases = std::move(phases);
  scenario.classes = {{.criticality = Criticality::kVital, .share = .05},
                      {.criticality = Criticality::kImportant, .share = .15},
                      {.criticality = Criticality::kSheddable, .share = .8}};
  scenario.routes = {{}};
  scenario.tiers = {
      // 1000/s.
      {.workers = 20, .stages = {{.time = {.mean = milliseconds(20)}}}}};
  return scenario;
}

std::vector<Arrival> Collect(const Scenario& scenario, uint64_t seed = 1) {
  std::vector<Arrival> all;
  Arrivals arrivals(scenario, seed);
  while (const auto arrival = arrivals.Next()) all.push_back(*arrival);
  return all;
}

size_t CountBetween(const std::vector<Arrival>& all, Duration from,
                    Duration to) {
  return static_cast<size_t>(std::count_if(
      all.begin(), all.end(),
      [&](const Arrival& a) { return a.at >= from && a.at < to; }));
}

// Five standard deviations of a Poisson count.
double FiveSigma(double mean) { return 5 * std::sqrt(mean); }

TEST(ArrivalsTest, PoissonCountsAndGapsFitTheRate) {
  const auto all = Collect(
      MakeScenario({{.name = "calm", .duration = seconds(100), .load = .8}}));

  EXPECT_NEAR(static_cast<double>(all.size()), 80'000, FiveSigma(80'000));
  double squares = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    const double gap = ToSeconds(all[i].at - all[i - 1].at) * 800;
    squares += gap * gap;
  }
  // E[gap^2] = 2 mean^2, with a deviation of sqrt(20 / n).
  const auto n = static_cast<double>(all.size() - 1);
  EXPECT_NEAR(squares / n, 2, 5 * std::sqrt(20 / n));
}

TEST(ArrivalsTest, ConstantArrivalsAreEquallySpaced) {
  Scenario scenario =
      MakeScenario({{.name = "calm", .duration = seconds(10), .load = .5}});
  scenario.arrivals = Spacing::kConstant;
  const auto all = Collect(scenario);
  ASSERT_NEAR(static_cast<double>(all.size()), 5000, 1);
  for (size_t i = 1; i < all.size(); ++i) {
    ASSERT_EQ(all[i].at - all[i - 1].at, milliseconds(2)) << i;
  }
}

TEST(ArrivalsTest, EachPhaseHasItsOwnRateAndNumber) {
  const auto all = Collect(
      MakeScenario({{.name = "calm", .duration = seconds(10), .load = .8},
                    {.name = "flood", .duration = seconds(15), .load = 10},
                    {.name = "idle", .duration = seconds(5), .load = 0},
                    {.name = "after", .duration = seconds(10), .load = .8}}));
  std::array<double, 4> count{};
  for (const Arrival& arrival : all) {
    count.at(arrival.phase) += 1;
    ASSERT_LT(arrival.at, seconds(40));
  }
  EXPECT_NEAR(count[0], 8000, FiveSigma(8000));
  EXPECT_NEAR(count[1], 150'000, FiveSigma(150'000));
  EXPECT_EQ(count[2], 0);
  EXPECT_NEAR(count[3], 8000, FiveSigma(8000));
  EXPECT_EQ(CountBetween(all, seconds(25), seconds(30)), 0u);
}

TEST(ArrivalsTest, ARampRisesLinearly) {
  const auto all = Collect(MakeScenario({{.name = "up",
                                          .duration = seconds(100),
                                          .shape = Phase::Shape::kRamp,
                                          .load = 0,
                                          .to = 2}}));
  for (int quarter = 0; quarter < 4; ++quarter) {
    // Integral of 20/s^2 * t over the quarter.
    const double expected = 20 * 25 * 25 * (quarter + .5);
    EXPECT_NEAR(static_cast<double>(CountBetween(all, seconds(25 * quarter),
                                                 seconds(25 * quarter + 25))),
                expected, FiveSigma(expected));
  }
}

TEST(ArrivalsTest, ASquareIsLowFirstAndHighForItsPeak) {
  const auto all = Collect(MakeScenario({{.name = "waves",
                                          .duration = seconds(90),
                                          .shape = Phase::Shape::kSquare,
                                          .load = .5,
                                          .to = 5,
                                          .every = seconds(15),
                                          .peak_for = seconds(5)}}));
  for (int wave = 0; wave < 6; ++wave) {
    const Duration start = seconds(15 * wave);
    EXPECT_NEAR(
        static_cast<double>(CountBetween(all, start, start + seconds(10))),
        5000, FiveSigma(5000));
    EXPECT_NEAR(static_cast<double>(CountBetween(all, start + seconds(10),
                                                 start + seconds(15))),
                25'000, FiveSigma(25'000));
  }
}

// The mean is .5 + 1.5 * .05 = .575 of capacity; over 2000 cycles the length
// of the peaks varies by 1 / sqrt(2000), and 150 000 requests are theirs.
TEST(ArrivalsTest, BurstsHaveTheirMeanAndAreBursty) {
  const Scenario scenario = MakeScenario({{.name = "bursts",
                                           .duration = seconds(2000),
                                           .shape = Phase::Shape::kBursts,
                                           .load = .5,
                                           .to = 2,
                                           .every = seconds(1),
                                           .peak_for = milliseconds(50)}});
  const auto all = Collect(scenario);
  const double mean = 1'150'000;
  EXPECT_NEAR(static_cast<double>(all.size()), mean,
              FiveSigma(mean) + 5 * 150'000 * std::sqrt(3. / 2000));

  // Variance of counts over mean in 100 ms: 1 for Poisson.
  std::vector<double> counts(20'000);
  for (const Arrival& a : all) {
    counts[static_cast<size_t>(a.at / milliseconds(100))] += 1;
  }
  double squares = 0;
  for (const double c : counts) squares += (c - 57.5) * (c - 57.5);
  EXPECT_GT(squares / 20'000 / 57.5, 3);
}

TEST(ArrivalsTest, ClassesComeInTheirShares) {
  const auto all = Collect(
      MakeScenario({{.name = "flood", .duration = seconds(10), .load = 10}}));
  std::array<double, 3> count{};
  for (const Arrival& arrival : all) count.at(arrival.cls) += 1;
  const auto n = static_cast<double>(all.size());
  EXPECT_NEAR(count[0], .05 * n, FiveSigma(.05 * n));
  EXPECT_NEAR(count[1], .15 * n, FiveSigma(.15 * n));
  EXPECT_NEAR(count[2], .80 * n, FiveSigma(.80 * n));
}

TEST(ArrivalsTest, ZipfWeightsClientsByTheirRank) {
  Scenario scenario =
      MakeScenario({{.name = "flood", .duration = seconds(10), .load = 10}});
  scenario.clients = {.count = 3, .zipf = 1};  // 6/11, 3/11, 2/11.
  const auto all = Collect(scenario);
  std::array<double, 3> count{};
  for (const Arrival& arrival : all) count.at(arrival.client) += 1;
  const auto n = static_cast<double>(all.size());
  EXPECT_NEAR(count[0], n * 6 / 11, FiveSigma(n));
  EXPECT_NEAR(count[1], n * 3 / 11, FiveSigma(n));
  EXPECT_NEAR(count[2], n * 2 / 11, FiveSigma(n));
}

// Goal: the guide finds what a search through all weights finds, edges and
// weights of zero included.
TEST(PickerTest, AgreesWithALinearSearch) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> weights;
    const uint64_t count = 1 + random.Below(40);
    while (weights.size() < count) {
      weights.push_back(random.Below(3) == 0 ? 0 : random.Uniform());
    }
    weights[random.Below(weights.size())] = 1;
    double sum = 0;
    for (const double weight : weights) sum += weight;
    const Picker picker(weights);
    for (int draw = 0; draw < 200; ++draw) {
      const double uniform =
          draw == 0 ? 0 : std::min(random.Uniform(), 1 - 1e-12);
      double reached = 0;
      size_t expected = 0;
      while (expected + 1 < weights.size() &&
             (reached += weights[expected]) / sum <= uniform) {
        ++expected;
      }
      ASSERT_EQ(picker.Pick(uniform), expected)
          << "round " << round << ", " << uniform;
    }
  }
}

TEST(ArrivalsTest, HogsComeOnTopWithTheirOwnClassClientsAndTime) {
  Scenario scenario =
      MakeScenario({{.name = "one", .duration = seconds(5), .load = .6},
                    {.name = "two", .duration = seconds(5), .load = .6}});
  scenario.clients = {.count = 999,
                      .hogs = {{.count = 2,
                                .load = 10,
                                .cls = 2,
                                .from = seconds(4),
                                .until = seconds(6)}}};
  const auto all = Collect(scenario);
  size_t hogs = 0;
  Duration last{};
  for (const Arrival& arrival : all) {
    ASSERT_GE(arrival.at, last);
    last = arrival.at;
    ASSERT_EQ(arrival.phase, arrival.at < seconds(5) ? 0 : 1);
    if (arrival.client < 999) continue;
    ++hogs;
    ASSERT_LT(arrival.client, 1001u);
    ASSERT_EQ(arrival.cls, 2);
    ASSERT_GE(arrival.at, seconds(4));
    ASSERT_LT(arrival.at, seconds(6));
  }
  EXPECT_NEAR(static_cast<double>(hogs), 20'000, FiveSigma(20'000));
  EXPECT_NEAR(static_cast<double>(all.size() - hogs), 6000, FiveSigma(6000));
}

TEST(ArrivalsTest, AHogChangesNothingForTheOthers) {
  Scenario scenario =
      MakeScenario({{.name = "calm", .duration = seconds(5), .load = .6}});
  std::vector<Duration> before;
  for (const Arrival& a : Collect(scenario)) before.push_back(a.at);
  scenario.clients.hogs = {{.load = 3}};
  std::vector<Duration> after;
  for (const Arrival& a : Collect(scenario)) {
    if (a.client < 1000) after.push_back(a.at);
  }
  EXPECT_EQ(before, after);
}

TEST(ArrivalsTest, SameSeedSameRequestsOtherSeedOthers) {
  const Scenario scenario =
      MakeScenario({{.name = "calm", .duration = seconds(5), .load = .6}});
  const auto a = Collect(scenario, 1);
  const auto b = Collect(scenario, 1);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].at, b[i].at);
    ASSERT_EQ(a[i].client, b[i].client);
    ASSERT_EQ(a[i].cls, b[i].cls);
  }
  EXPECT_NE(Collect(scenario, 2)[0].at, a[0].at);
}

// Means and deviations of each distribution, within five standard errors.
TEST(ServiceTimeTest, DrawsHaveTheirMean) {
  constexpr int kDraws = 100'000;
  const double root = std::sqrt(static_cast<double>(kDraws));
  using enum Span::Distribution;
  const struct {
    Span span;
    double deviation;  // Over the mean.
  } kCases[] = {
      {{.distribution = kConstant, .mean = milliseconds(20)}, 0},
      {{.distribution = kExponential, .mean = milliseconds(20)}, 1},
      {{.distribution = kLognormal, .mean = milliseconds(20), .sigma = .5},
       .533},
      {{.distribution = kUniform, .mean = milliseconds(20)}, .578},
      {{.distribution = kBimodal,
        .fast = milliseconds(10),
        .slow = milliseconds(110),
        .slow_ratio = .1},
       1.5},
  };
  for (const auto& c : kCases) {
    double sum = 0;
    for (uint64_t i = 0; i < kDraws; ++i) {
      sum += ToSeconds(DrawFor(c.span, 1, 0, 0, i));
    }
    EXPECT_NEAR(sum / kDraws, .020, .020 * 5 * c.deviation / root + 1e-12)
        << static_cast<int>(c.span.distribution);
  }
}

TEST(ServiceTimeTest, AStageIsTakenByItsShareOfItsRoute) {
  const Stage stage{.ratio = .25, .route = 1};
  int taken = 0;
  for (uint64_t i = 0; i < 40'000; ++i) {
    ASSERT_FALSE(Takes(stage, 0, 1, 0, 0, i));
    taken += Takes(stage, 1, 1, 0, 0, i) ? 1 : 0;
  }
  EXPECT_NEAR(taken, 10'000, FiveSigma(10'000));
}

TEST(ServiceTimeTest, DependsOnSeedStageAndAttemptOnly) {
  const Span span{.distribution = Span::Distribution::kExponential,
                  .mean = milliseconds(20)};
  const Duration drawn = DrawFor(span, 1, 0, 0, 7);
  EXPECT_EQ(drawn, DrawFor(span, 1, 0, 0, 7));
  EXPECT_NE(drawn, DrawFor(span, 2, 0, 0, 7));
  EXPECT_NE(drawn, DrawFor(span, 1, 1, 0, 7));
  EXPECT_NE(drawn, DrawFor(span, 1, 0, 1, 7));
  EXPECT_NE(drawn, DrawFor(span, 1, 0, 0, 8));
  EXPECT_NE(drawn, DrawFor(span, 1, 0, 0, AttemptNumber(7, 1)));
}

}  // namespace
}  // namespace weir::scenario
