#include "weir/sim/standings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sample_page.h"

namespace weir::sim_report {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Algorithm Make(const std::string& name, double work, double p99,
               double vital = 1) {
  Algorithm algorithm;
  algorithm.name = name;
  algorithm.figures = {{"work_ratio", {work, work, work}},
                       {"latency_p99_ms", {p99, p99, p99}}};
  algorithm.class_good_ratio = {Spread{vital, vital, vital}, Spread{}};
  return algorithm;
}

Page PageOf(std::vector<Algorithm> algorithms) {
  Page page;
  Study& study = page.studies.emplace_back();
  study.name = "one";
  study.seeds = {1, 2, 3};
  study.classes = {"vital", "sheddable"};
  study.algorithms = std::move(algorithms);
  study.algorithms[0].rival = false;
  return page;
}

TEST(StandingsTest, WhatReadsAlikeSharesARank) {
  const Standings standings = StandingsOf(PageOf(
      {Make("ours", .9949, 50), Make("a", .9951, 51), Make("b", .9, 40)}));
  const auto& ranks = standings.studies[0].algorithms;
  EXPECT_EQ(ranks[0].work, 1u);  // 99.5 as well.
  EXPECT_EQ(ranks[1].work, 1u);
  EXPECT_EQ(ranks[2].work, 3u);
  EXPECT_EQ(ranks[2].p99, 1u);
  EXPECT_EQ(ranks[0].p99, 2u);
}

TEST(StandingsTest, WhoDoesNothingIsNotFast) {
  const Standings standings =
      StandingsOf(PageOf({Make("ours", 1, 50), Make("idle", .1, 5)}));
  EXPECT_EQ(standings.studies[0].algorithms[0].p99, 1u);
  EXPECT_EQ(standings.studies[0].algorithms[1].p99, 2u);
  EXPECT_EQ(standings.studies[0].lowest_p99, 0u);
}

TEST(StandingsTest, TheTopGroupNeedsTheWorkAndTheLatency) {
  const Standings standings =
      StandingsOf(PageOf({Make("ours", .995, 54), Make("most", 1, 60),
                          Make("near", 1, 50), Make("fast", .98, 20)}));
  const auto& ranks = standings.studies[0].algorithms;
  EXPECT_TRUE(ranks[0].top);
  EXPECT_FALSE(ranks[1].top);  // More than a tenth above 50.
  EXPECT_TRUE(ranks[2].top);
  EXPECT_FALSE(ranks[3].top);
}

TEST(StandingsTest, MutantsAndVariantsTakeNobodysRank) {
  Algorithm mutant = Make("mutant-maximum", 1, 10);
  mutant.rival = false;
  mutant.mutant = true;
  Algorithm variant = Make("weir-known", 1, 10);
  variant.rival = false;
  const Standings standings =
      StandingsOf(PageOf({Make("weir", .9, 50), mutant, variant}));
  EXPECT_EQ(standings.studies[0].competitors, 1u);
  EXPECT_EQ(standings.studies[0].algorithms[0].mean(), 1);
}

TEST(StandingsTest, AMutantPassesUnlessItBreaksABoundUnderEverySeed) {
  Algorithm fails = Make("mutant-minimum", 0, 10);
  Algorithm passes = Make("mutant-frozen", 1, 10);
  fails.mutant = passes.mutant = true;
  fails.rival = passes.rival = false;
  fails.seeds_broken = 3;
  passes.seeds_broken = 2;
  EXPECT_THAT(PassingMutants(PageOf({Make("weir", 1, 50), fails, passes})),
              ElementsAre("mutant-frozen in one, under 1 of 3 seeds"));
}

TEST(StandingsTest, AGoalIsMetByTheMedian) {
  Page page = PageOf({Make("weir", 1, 50), Make("a", 1, 50)});
  page.studies[0].goals = {{"work_ratio", .98, true}, {"shed", 3, false}};
  page.studies[0].algorithms[0].at_goals = {Spread{.98, .5, 1},
                                            Spread{3.1, 0, 4}};
  page.studies[0].algorithms[1].at_goals = {std::nullopt, Spread{1, 1, 9}};
  const Standings standings = StandingsOf(page);
  EXPECT_EQ(standings.studies[0].algorithms[0].goals_met, 1u);
  EXPECT_EQ(standings.studies[0].algorithms[1].goals_met, 1u);
  EXPECT_THAT(StandingsText(page, 5), HasSubstr("shed <= 3: 3.1 (4), missed"));
}

// Goal: an algorithm that is a little better everywhere comes first, and what
// is printed for people has a row for each scenario.
TEST(StandingsTest, PlacesAreByTheMeanOfRanks) {
  const Page page = SamplePage(3, 5, 30);
  const Standings standings = StandingsOf(page);
  ASSERT_EQ(standings.places.size(), 5u);
  EXPECT_EQ(standings.places[0].name, "a0");
  EXPECT_EQ(standings.places[0].mean_rank, 1);
  EXPECT_EQ(standings.places[4].name, "a4");
  const std::string text = StandingsText(page, 2);
  for (const char* name : {"\ns0 ", "\ns1 ", "\ns2 "}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
}

// Goal: rivals out of an earlier run's JSON stand as they stood there.
TEST(StandingsTest, RivalsComeBackFromJsonAsTheyWere) {
  Page page = SamplePage(2, 4, 30);
  for (Study& study : page.studies) study.requests = 1000;
  const std::string json = StandingsJson(page);
  Page ours = page;
  for (Study& study : ours.studies) study.algorithms.resize(1);

  EXPECT_THAT(AddRivalsFrom(json, ours), IsEmpty());
  EXPECT_EQ(StandingsJson(ours), json);

  ours = page;
  ours.studies[1].requests = 999;
  EXPECT_THAT(AddRivalsFrom(json, ours), HasSubstr("other scenarios"));
  EXPECT_FALSE(AddRivalsFrom("{", ours).empty());
}

}  // namespace
}  // namespace weir::sim_report
