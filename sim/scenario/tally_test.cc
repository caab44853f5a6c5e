#include "weir/scenario/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace weir::scenario {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 1000/s; calm at .8 for 2 s, flood at 10 for 3 s, after at .8 for 2 s.
Scenario MakeScenario() {
  Scenario scenario;
  scenario.name = "test";
  scenario.deadline = scenario.timeout = milliseconds(500);
  scenario.phases = {{.name = "calm", .duration = seconds(2), .load = .8},
                     {.name = "flood", .duration = seconds(3), .load = 10},
                     {.name = "after", .duration = seconds(2), .load = .8}};
  scenario.classes = {{.criticality = Criticality::kVital, .share = .05},
                      {.criticality = Criticality::kSheddable, .share = .95}};
  scenario.routes = {{}};
  scenario.tiers = {
      {.workers = 20, .stages = {{.time = {.mean = milliseconds(20)}}}}};
  return scenario;
}

// Plays the scenario with requests at equal distances, every 20th of them
// vital, each ended by `decide`.
Report Play(const Scenario& scenario,
            const std::function<void(Ended&, int index)>& decide) {
  Tally tally(scenario, 7);
  int index = 0;
  for (uint16_t phase = 0; phase < scenario.phases.size(); ++phase) {
    const Duration gap = FromSeconds(1 / (1000 * scenario.phases[phase].load));
    const Duration start = scenario.PhaseStart(phase);
    const Duration end = scenario.PhaseStart(phase + size_t{1});
    for (Duration at = start; at < end; at += gap, ++index) {
      Ended ended{.at = at, .end = at + milliseconds(20), .phase = phase};
      ended.cls = index % 20 == 0 ? 0 : 1;
      decide(ended, index);
      tally.Add(ended);
    }
  }
  return tally.Make();
}

// Of the flood, one in ten is good.
void ShedTheSurplus(Ended& ended, int index) {
  if (ended.phase == 1 && index % 10 != 0) ended.ending = Ending::kShed;
}

// Phases that were not played, and what of one was not, are in no figure.
TEST(TallyTest, ARunThatIsStoppedIsHeldAgainstWhatItPlayed) {
  const Scenario scenario = MakeScenario();
  Scenario shorter = scenario;
  shorter.Truncate(seconds(3));
  ASSERT_EQ(shorter.phases.size(), 2u);
  EXPECT_EQ(shorter.length(), seconds(3));
  Tally tally(scenario, 7);
  const Report whole = Play(shorter, [&](Ended& ended, int index) {
    ShedTheSurplus(ended, index);
    tally.Add(ended);
  });

  const Report cut = tally.MakeUntil(seconds(3));

  EXPECT_EQ(cut.phases.size(), 2u);
  EXPECT_EQ(ToJson(cut), ToJson(whole));
  EXPECT_GT(cut.all.goodput_ratio, .99);
}

TEST(TallyTest, PerfectControlReachesTheIdeal) {
  const Report report = Play(MakeScenario(), ShedTheSurplus);

  EXPECT_EQ(report.all.offered, 1600u + 30'000u + 1600u);
  EXPECT_EQ(report.all.good, 1600u + 3000u + 1600u);
  EXPECT_EQ(report.all.shed, 27'000u);
  EXPECT_NEAR(report.all.goodput_ratio, 1, .001);
  EXPECT_NEAR(report.all.work_ratio, 1, .001);
  EXPECT_EQ(report.all.false_shed_ratio, 0);
  // The first answers of the flood come a service time after its start, which
  // is 2 % of the first window.
  EXPECT_EQ(report.all.converge, Duration{});
  EXPECT_EQ(report.all.recover, Duration{});
  ASSERT_EQ(report.phases.size(), 3u);
  EXPECT_NEAR(report.phases[1].goodput_ratio, 1, .001);
  EXPECT_FALSE(report.phases[0].converge);
  EXPECT_TRUE(report.phases[1].converge);
  EXPECT_TRUE(report.phases[2].recover);
}

TEST(TallyTest, ClassesAreHeldAgainstTheirOwnIdeal) {
  const Report report = Play(MakeScenario(), ShedTheSurplus);
  // Every tenth is good and every twentieth vital: all vital ones are served.
  ASSERT_EQ(report.classes.size(), 2u);
  EXPECT_EQ(report.classes[0].name, "vital");
  EXPECT_EQ(report.classes[0].good, report.classes[0].offered);
  EXPECT_NEAR(report.classes[0].goodput_ratio, 1, 1e-9);
  // Half of the capacity is left for the other.
  EXPECT_NEAR(report.classes[1].ideal, 1520 + 1500 + 1520, 2);
  EXPECT_NEAR(report.classes[1].goodput_ratio, 1, .001);
}

TEST(TallyTest, ConvergesAtTheStepFromWhichEverySecondIsGood) {
  // Nothing is answered in the first 700 ms of the flood.
  const Report report = Play(MakeScenario(), [](Ended& ended, int index) {
    ShedTheSurplus(ended, index);
    if (ended.phase == 1 && ended.at < milliseconds(2700)) {
      ended.ending = Ending::kShed;
    }
  });
  // A window may miss 5 %: 50 ms, less the 20 ms of the first answers.
  EXPECT_EQ(report.all.converge, milliseconds(700));
  EXPECT_NEAR(report.phases[1].goodput_ratio, 2.3 / 3, .001);
}

TEST(TallyTest, WhatNeverConvergesCountsWithTheWholeOverload) {
  const Report report = Play(MakeScenario(), [](Ended& ended, int) {
    if (ended.phase == 1) ended.ending = Ending::kLate;
  });
  EXPECT_EQ(report.all.converge, seconds(3));
}

TEST(TallyTest, RecoversWhenTheLastRequestFares) {
  const Report report = Play(MakeScenario(), [](Ended& ended, int index) {
    ShedTheSurplus(ended, index);
    if (ended.phase == 2 && ended.at < milliseconds(5300)) {
      ended.ending = index % 2 == 0 ? Ending::kShed : Ending::kLate;
    }
  });
  EXPECT_EQ(report.all.recover, milliseconds(300));
  // 120 of the 3200 that came outside of the overload.
  EXPECT_NEAR(report.all.false_shed_ratio, 120. / 3200, 1e-9);
  EXPECT_EQ(report.phases[0].false_shed_ratio, 0);
}

TEST(TallyTest, LatencyCountsLateOnesButNotTheShed) {
  const Report report = Play(MakeScenario(), [](Ended& ended, int index) {
    if (ended.phase == 1) ended.ending = Ending::kShed;
    if (ended.phase != 1 && index % 50 == 0) {
      ended.ending = Ending::kLate;
      ended.end = ended.at + milliseconds(500);
    }
  });
  EXPECT_NEAR(ToSeconds(report.all.p50), .020, .0002);
  EXPECT_NEAR(ToSeconds(report.all.p99), .500, .005);
}

TEST(TallyTest, APhaseThatIsNotMeasuredIsInNoTotal) {
  Scenario scenario = MakeScenario();
  scenario.phases[1].measured = false;
  const Report report = Play(scenario, ShedTheSurplus);
  EXPECT_EQ(report.all.offered, 3200u);
  EXPECT_EQ(report.all.shed, 0u);
  EXPECT_FALSE(report.all.converge);
  EXPECT_EQ(report.phases[1].offered, 30'000u);
  EXPECT_EQ(report.classes[0].offered, 160u);
}

TEST(TallyTest, ServiceTimesThatAreToldTakeTheNoiseOut) {
  // By chance every request costs a tenth less, so a tenth more are done.
  const Report report = Play(MakeScenario(), [](Ended& ended, int index) {
    ended.work = milliseconds(18);
    if (ended.phase == 1 && index % 9 != 0) ended.ending = Ending::kShed;
  });
  EXPECT_NEAR(report.phases[1].goodput_ratio, 1.111, .002);
  EXPECT_NEAR(report.phases[1].work_ratio, 1, .002);
}

TEST(ReportTest, JsonHasTheAgreedShape) {
  Report report = Play(MakeScenario(), ShedTheSurplus);
  report.phases.resize(1);
  report.classes.resize(1);
  report.send_lag = SendLag{.p99 = milliseconds(1), .max = milliseconds(2)};
  EXPECT_EQ(
      ToJson(report),
      R"({"scenario":"test","seed":7,"offered":33200,"good":6200,"late":0,)"
      R"("shed":27000,"failed":0,"goodput_ratio":1.0,"work_ratio":1.0,)"
      R"("false_shed_ratio":0.0,)"
      R"("latency_ms":{"p50":19.988,"p99":19.988,"p999":19.988},)"
      R"("converge_ms":0.0,"recover_ms":0.0,"amplification":1.0,)"
      R"("classes":[{"name":"vital","offered":1660,"good":1660,"late":0,)"
      R"("shed":0,"failed":0,"goodput_ratio":1.0,"good_ratio":1.0,)"
      R"("latency_ms":{"p50":19.988,"p99":19.988,"p999":19.988}}],)"
      R"("phases":[{"name":"calm","offered":1600,"good":1600,"late":0,)"
      R"("shed":0,"failed":0,"goodput_ratio":1.0,"work_ratio":1.0,)"
      R"("false_shed_ratio":0.0,)"
      R"("latency_ms":{"p50":19.988,"p99":19.988,"p999":19.988},)"
      R"("converge_ms":null,"recover_ms":null,"amplification":1.0}],)"
      R"("send_lag_ms":{"p99":1.0,"max":2.0},"valid":true})");
}

TEST(ReportTest, BrokenBoundsAreNamedWithValueAndBound) {
  Scenario scenario = MakeScenario();
  const Report report = Play(scenario, [](Ended& ended, int) {
    if (ended.phase == 1) ended.ending = Ending::kShed;
  });
  using enum Bound::Scope;
  scenario.bounds = {
      {.scope = kAll, .metric = "false_shed_ratio", .max = 0},
      {.scope = kPhase, .of = "flood", .metric = "goodput_ratio", .min = .97},
      {.scope = kClass, .of = "vital", .metric = "good_ratio", .min = .05},
      {.scope = kPhase, .of = "calm", .metric = "converge_ms", .max = 1}};
  EXPECT_THAT(BrokenBounds(scenario, report),
              ElementsAre("goodput_ratio of flood is 0, expected at least 0.97",
                          "converge_ms of calm has no value in this run"));
}

TEST(ReportTest, TextShowsLowerBoundsAsSuch) {
  const Report report = Play(MakeScenario(), [](Ended& ended, int) {
    if (ended.phase != 1) return;
    ended.ending = Ending::kLate;
    ended.end = ended.at + milliseconds(500);
  });
  const std::string text = ToText(report, milliseconds(500));
  EXPECT_THAT(text, HasSubstr("30 000"));
  EXPECT_THAT(text, HasSubstr(">500"));
}

}  // namespace
}  // namespace weir::scenario
