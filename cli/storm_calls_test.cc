#include "storm_calls.h"

#include <gtest/gtest.h>

#include <vector>

#include "weir/scenario/service_time.h"

namespace weir::cli {
namespace {

using scenario::Report;
using scenario::Scenario;
using std::chrono::milliseconds;
using std::chrono::seconds;

// 100 requests, one each 10 ms, with a deadline of 500 ms.
Scenario MakeScenario() {
  Scenario scenario;
  scenario.arrivals = scenario::Spacing::kConstant;
  scenario.deadline = scenario.timeout = milliseconds(500);
  scenario.phases = {
      {.name = "all", .duration = milliseconds(1005), .load = .1}};
  scenario.classes = {{.deadline = milliseconds(500)}};
  scenario.routes = {{}};
  scenario.tiers = {
      {.workers = 20, .stages = {{.time = {.mean = milliseconds(20)}}}}};
  return scenario;
}

// Takes every attempt when it is due and ends it by `outcome` after `after`.
template <typename Outcome>
std::vector<StormAttempt> Play(StormCalls& calls, Duration after,
                               Outcome outcome) {
  std::vector<StormAttempt> all;
  while (!calls.done()) {
    const auto at = calls.next();
    if (!at) {
      ADD_FAILURE() << "requests that never end";
      return all;
    }
    const auto attempt = calls.Take(*at);
    if (!attempt) {
      ADD_FAILURE() << "nothing is due when next() said so";
      return all;
    }
    all.push_back(*attempt);
    calls.End(*attempt, attempt->intended + after, outcome(*attempt));
  }
  return all;
}

StormOutcome Answer(const StormAttempt&) { return StormOutcome::kAnswered; }
StormOutcome Refuse(const StormAttempt&) { return StormOutcome::kShed; }

TEST(StormCallsTest, EachRequestIsTakenOnceAndAtItsInstant) {
  const Scenario scenario = MakeScenario();
  StormCalls calls(scenario, 1);
  EXPECT_FALSE(calls.Take(milliseconds(9)));
  const auto all = Play(calls, milliseconds(20), Answer);
  ASSERT_EQ(all.size(), 100u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].number, i);
    EXPECT_EQ(all[i].intended, milliseconds(10) * (i + 1));
  }
  EXPECT_EQ(calls.counts().good, 100u);
  EXPECT_EQ(calls.MakeReport().all.good, 100u);
}

TEST(StormCallsTest, TheDeadlineIsTheEdgeBetweenGoodAndLate) {
  const Scenario scenario = MakeScenario();
  StormCalls in_time(scenario, 1);
  Play(in_time, milliseconds(500), Answer);
  EXPECT_EQ(in_time.counts().good, 100u);
  StormCalls late(scenario, 1);
  Play(late, milliseconds(500) + Duration(1), Answer);
  EXPECT_EQ(late.counts().late, 100u);
}

TEST(StormCallsTest, LatencyCountsFromTheIntendedInstantNotFromTheSending) {
  const Scenario scenario = MakeScenario();
  StormCalls calls(scenario, 1);
  // The generator stalls for 400 ms before it sends the first 40 requests.
  std::vector<StormAttempt> stalled;
  while (const auto attempt = calls.Take(milliseconds(400))) {
    stalled.push_back(*attempt);
  }
  ASSERT_EQ(stalled.size(), 40u);
  for (const StormAttempt& attempt : stalled) {
    calls.End(attempt, milliseconds(410), StormOutcome::kAnswered);
  }
  Play(calls, milliseconds(10), Answer);
  // 25 of the 100 waited for 160 ms and more.
  const Report report = calls.MakeReport();
  EXPECT_NEAR(ToSeconds(report.all.p99), .390, .004);
  EXPECT_NEAR(ToSeconds(report.all.p50), .010, .0002);
}

TEST(StormCallsTest, EachOutcomeIsCountedAsWhatItIs) {
  const Scenario scenario = MakeScenario();
  StormCalls calls(scenario, 1);
  Play(calls, milliseconds(20), [](const StormAttempt& attempt) {
    switch (attempt.number % 4) {
      case 0:
        return StormOutcome::kAnswered;
      case 1:
        return StormOutcome::kShed;
      case 2:
        return StormOutcome::kFailed;
      default:
        return StormOutcome::kGivenUp;
    }
  });
  const StormCalls::Counts& counts = calls.counts();
  EXPECT_EQ(counts.good, 25u);
  EXPECT_EQ(counts.shed, 25u);
  EXPECT_EQ(counts.failed, 25u);
  EXPECT_EQ(counts.late, 25u);
}

TEST(StormCallsTest, RetriesEndWithTheirCountAndWaitLongerEachTime) {
  Scenario scenario = MakeScenario();
  scenario.retries = {.count = 3, .backoff = milliseconds(100), .jitter = 0};
  scenario.phases[0].duration = milliseconds(15);  // One request.
  StormCalls calls(scenario, 1);
  const auto all = Play(calls, milliseconds(20), Refuse);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].intended - all[0].intended, milliseconds(120));
  EXPECT_EQ(all[2].intended - all[1].intended, milliseconds(220));
  EXPECT_EQ(all[3].intended - all[2].intended, milliseconds(420));
  EXPECT_EQ(all[3].number, scenario::AttemptNumber(0, 3));
  EXPECT_EQ(calls.counts().shed, 1u);
  EXPECT_EQ(calls.MakeReport().all.attempts, 4u);
}

TEST(StormCallsTest, LayersMultiplyAttempts) {
  Scenario scenario = MakeScenario();
  scenario.retries = {.count = 2, .jitter = 0, .layers = 3};
  StormCalls calls(scenario, 1);
  EXPECT_EQ(Play(calls, milliseconds(1), Refuse).size(), 2700u);
}

TEST(StormCallsTest, AnAttemptThatIsRetriedInTimeIsGood) {
  Scenario scenario = MakeScenario();
  scenario.retries = {.count = 1};
  StormCalls calls(scenario, 1);
  Play(calls, milliseconds(20), [](const StormAttempt& attempt) {
    return attempt.number >> 48 == 0 ? StormOutcome::kGivenUp
                                     : StormOutcome::kAnswered;
  });
  EXPECT_EQ(calls.counts().good, 100u);
  EXPECT_EQ(calls.MakeReport().amplification(), 2);
}

TEST(StormCallsTest, OnlyWhatIsNamedIsTriedAgain) {
  Scenario scenario = MakeScenario();
  scenario.retries = {.count = 3, .on_shed = false};
  StormCalls calls(scenario, 1);
  EXPECT_EQ(Play(calls, milliseconds(1), Refuse).size(), 100u);
}

TEST(StormCallsTest, ABudgetHoldsRetriesToItsRatio) {
  Scenario scenario = MakeScenario();
  scenario.retries = {.count = 20, .budget_ratio = .1};
  StormCalls calls(scenario, 1);
  // Ten that it begins with, and a tenth of the hundred.
  EXPECT_NEAR(static_cast<double>(Play(calls, milliseconds(1), Refuse).size()),
              120, 1);
}

TEST(StormCallsTest, PatienceEndsRetries) {
  Scenario scenario = MakeScenario();
  scenario.retries = {
      .count = 20, .backoff = milliseconds(100), .factor = 1, .jitter = 0};
  scenario.patience = milliseconds(350);
  StormCalls calls(scenario, 1);
  EXPECT_EQ(Play(calls, Duration{}, Refuse).size(), 400u);
}

TEST(StormCallsTest, CooperativeClientsWaitAsLongAsTheyAreAsked) {
  Scenario scenario = MakeScenario();
  scenario.phases[0].duration = milliseconds(15);
  scenario.clients.cooperative_ratio = 1;
  scenario.retries = {.count = 1};
  StormCalls calls(scenario, 1);
  const auto first = calls.Take(milliseconds(10));
  calls.End(*first, milliseconds(10), StormOutcome::kShed, {}, seconds(7));
  EXPECT_EQ(calls.next(), milliseconds(10) + seconds(7));
}

TEST(StormCallsTest, AHedgeIsSentWhenNeededAndTheFirstAnswerCounts) {
  Scenario scenario = MakeScenario();
  scenario.phases[0].duration = milliseconds(25);  // Two requests.
  scenario.hedging.after = milliseconds(100);
  StormCalls calls(scenario, 1);
  const auto slow = calls.Take(milliseconds(10));
  const auto quick = calls.Take(milliseconds(20));
  calls.End(*quick, milliseconds(40), StormOutcome::kAnswered);
  const auto hedge = calls.Take(milliseconds(110));
  ASSERT_TRUE(hedge);
  EXPECT_EQ(hedge->arrival.number, slow->arrival.number);
  EXPECT_FALSE(calls.Take(milliseconds(120)));  // The quick one needs none.
  calls.End(*hedge, milliseconds(130), StormOutcome::kAnswered);
  EXPECT_TRUE(calls.done());
  calls.End(*slow, milliseconds(500), StormOutcome::kGivenUp);
  EXPECT_EQ(calls.counts().good, 2u);
  EXPECT_EQ(calls.MakeReport().all.attempts, 3u);
}

}  // namespace
}  // namespace weir::cli
