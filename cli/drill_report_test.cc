#include "drill_report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace weir::cli {
namespace {

using ::testing::HasSubstr;

Snapshot::Drilled Side(uint64_t ok, uint64_t error, uint64_t late) {
  return {.started = ok + error + late,
          .ok = ok,
          .error = error,
          .late = late,
          .latency_us = 2000 * (ok + error + late)};
}

DrillVerdict Of(const Snapshot::Drilled& drilled,
                const Snapshot::Drilled& control) {
  return Judge({.drilled = drilled, .control = control});
}

TEST(DrillReportTest, ABranchThatFailsAsRarelyAsTheRestWorks) {
  EXPECT_EQ(Of(Side(100, 0, 0), Side(9900, 0, 0)), DrillVerdict::kWorks);
  EXPECT_EQ(Of(Side(99, 1, 0), Side(9800, 100, 0)), DrillVerdict::kWorks);
  // Better is not worse.
  EXPECT_EQ(Of(Side(1000, 0, 0), Side(9000, 900, 0)), DrillVerdict::kWorks);
}

TEST(DrillReportTest, ErrorsAndLateAnswersCountAlike) {
  EXPECT_EQ(Of(Side(90, 10, 0), Side(9900, 0, 0)), DrillVerdict::kWorse);
  EXPECT_EQ(Of(Side(90, 0, 10), Side(9900, 0, 0)), DrillVerdict::kWorse);
  EXPECT_EQ(Of(Side(0, 100, 0), Side(9900, 0, 0)), DrillVerdict::kWorse);
}

TEST(DrillReportTest, WhatChanceExplainsIsNotWorse) {
  // 1 % and 2 % of 200: 1.4 standard errors.
  EXPECT_EQ(Of(Side(196, 4, 0), Side(19800, 200, 0)), DrillVerdict::kWorks);
  EXPECT_EQ(Of(Side(1960, 40, 0), Side(19800, 200, 0)), DrillVerdict::kWorse);
}

TEST(DrillReportTest, TooFewOnEitherSideIsNoVerdict) {
  EXPECT_EQ(Of(Side(29, 0, 0), Side(9900, 0, 0)), DrillVerdict::kTooFew);
  EXPECT_EQ(Of(Side(0, 29, 0), Side(9900, 0, 0)), DrillVerdict::kTooFew);
  EXPECT_EQ(Of(Side(500, 0, 0), Side(29, 500, 0)), DrillVerdict::kTooFew);
  EXPECT_EQ(Of({}, {}), DrillVerdict::kTooFew);
}

TEST(DrillReportTest, ABranchThatFailsAtOnceOrHangsIsWorse) {
  Snapshot::Drilled other;
  other.started = other.other = 100;
  EXPECT_EQ(Of(other, Side(9900, 0, 0)), DrillVerdict::kWorse);
  // Streams: nothing on either side is known to end well.
  EXPECT_EQ(Of(other, other), DrillVerdict::kTooFew);
  Snapshot::Drilled half = Side(100, 0, 0);
  half.other = 100;
  EXPECT_EQ(Of(half, half), DrillVerdict::kWorks);
}

TEST(DrillReportTest, CountsAreThoseOfThisDrill) {
  const auto gained = Since(Side(150, 20, 3), Side(100, 20, 1));
  EXPECT_EQ(gained.started, 52u);
  EXPECT_EQ(gained.ok, 50u);
  EXPECT_EQ(gained.error, 0u);
  EXPECT_EQ(gained.late, 2u);
}

TEST(DrillReportTest, SaysWhyItEndedAndWhatItFound) {
  const DrillReport report{.drilled = Side(95, 5, 0),
                           .control = Side(9900, 0, 0),
                           .end = DrillEnd::kOverload};
  EXPECT_THAT(Render(report), HasSubstr("stopped: the service became"));
  EXPECT_THAT(Render(report), HasSubstr("WORSE: 0.0500 of the drilled"));
  const auto json = nlohmann::json::parse(RenderJson(report));
  EXPECT_EQ(json["end"], "overload");
  EXPECT_EQ(json["verdict"], "worse");
  EXPECT_EQ(json["drilled"]["latency_ms"], 2.0);
}

}  // namespace
}  // namespace weir::cli
