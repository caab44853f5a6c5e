#include "weir/hunt/table.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::hunt {
namespace {

// The hunted one, doing nothing, and a rival.
Played With(double hunted, double none, double rival) {
  Played played;
  for (const double score : {hunted, none, rival}) {
    played.figures.push_back({.goodput = score, .work = score + .1});
  }
  return played;
}

TEST(TableTest, WhatDoingNothingDoesIsCarriedAndTheRestIsOverload) {
  const std::vector<Played> worlds = {With(.99, .995, 1), With(.90, 1, 1),
                                      With(.5, .4, 1), With(1, .1, .5)};

  const Distribution d = Distribute(worlds, 0, 1);

  EXPECT_EQ(d.carried, 2u);
  EXPECT_DOUBLE_EQ(d.within, .5);
  EXPECT_NEAR(d.lost_worst, .1, 1e-12);
  EXPECT_EQ(d.overload, 2u);
  EXPECT_DOUBLE_EQ(d.near, .5);
  EXPECT_DOUBLE_EQ(d.mean, .75);
  EXPECT_DOUBLE_EQ(d.worst, .5);
}

TEST(TableTest, LossIsToNothingWhereItIsCarriedAndElseToTheBest) {
  EXPECT_NEAR(Loss(With(.9, 1, 1.2), 1), .1, 1e-12);
  EXPECT_NEAR(Loss(With(.6, .1, .8), 1), .25, 1e-12);
  EXPECT_NEAR(Loss(With(.9, .1, .8), 1), 0, 1e-12);
}

TEST(TableTest, RecoveryIsHeldToTheIdealOrWhatTheBestCould) {
  Played both = With(.5, .5, .5);
  both.figures[0].after = .4;
  both.figures[1].after = .5;
  both.figures[2].after = .3;
  Played above = both;
  above.figures[0].after = 1;
  above.figures[1].after = 1.3;

  EXPECT_DOUBLE_EQ(Distribute({both}, 0, 1).recovered_worst, .8);
  EXPECT_DOUBLE_EQ(Distribute({above}, 0, 1).recovered_worst, 1);
  EXPECT_EQ(Distribute({With(1, 1, 1)}, 0, 1).disturbed, 0u);
}

TEST(TableTest, ARecordReadsBackAsItWasWritten) {
  Record record;
  record[7]["none"] = {.goodput = 1. / 3, .work = .1, .after = .25};
  record[12]["fixed+queue"] = {.false_shed = 1e-9, .vital = 2. / 3};

  const auto read = ParseRecord(ToJson(record));

  ASSERT_TRUE(read);
  EXPECT_EQ(ToJson(*read), ToJson(record));
  EXPECT_EQ(read->at(7).at("none").goodput, 1. / 3);
  EXPECT_FALSE(read->at(7).at("none").vital.has_value());
}

TEST(TableTest, BrokenBoundsAreNamed) {
  const Distribution d{.lost_worst = .2, .mean = .75};
  const auto broken = BrokenBounds(d, "mean=0.8,lost_worst=0.1,within=1");
  ASSERT_TRUE(broken);
  EXPECT_EQ(*broken,
            (std::vector<std::string>{"mean is 0.750, below 0.8",
                                      "lost_worst is 0.200, above 0.1"}));
  EXPECT_TRUE(BrokenBounds(d, "mean=0.75,lost_worst=0.2")->empty());
  EXPECT_FALSE(BrokenBounds(d, "means=0.8"));
  EXPECT_FALSE(BrokenBounds(d, "mean"));
  EXPECT_FALSE(BrokenBounds(d, "mean=x"));
}

TEST(TableTest, ARecordOfAnotherGeneratorIsRefused) {
  const auto read = ParseRecord(R"({"generator":0,"worlds":{}})");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("of generator 0"), std::string::npos);
  EXPECT_FALSE(ParseRecord("[]"));
}

}  // namespace
}  // namespace weir::hunt
