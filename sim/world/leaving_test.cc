// Callers that leave, proxies that give up, and requests that fail.

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <vector>

#include "weir/sim/algorithms.h"
#include "weir/sim/world.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using scenario::Scenario;
using scenario::Span;

// One worker of 100 ms that is asked for three times what it can do.
Scenario MakeScenario() {
  Scenario scenario;
  scenario.name = "leaving";
  scenario.arrivals = scenario::Spacing::kConstant;
  scenario.deadline = scenario.timeout = 250ms;
  scenario.phases = {{.name = "all", .duration = 10s, .load = 3}};
  scenario.classes = {{}};
  scenario.routes = {{}};
  scenario.tiers = {{.stages = {{.name = "cpu", .time = {.mean = 100ms}}}}};
  return scenario;
}

struct End {
  Outcome outcome;
  Duration admitted;  // How long ago.
  Duration sent;
};

// Lets all run, and keeps what it is told of their ends.
class OpenGate final : public Gate {
 public:
  OpenGate(std::vector<End>& ends, bool inside)
      : ends_(ends), inside_(inside) {}
  Decision Offer(Visit& visit, Instant now) override {
    visit.started = now;
    return {};
  }
  void Settle(Instant) override {}
  void Finish(Visit& visit, Outcome outcome, Instant now) override {
    ends_.push_back({outcome, now - visit.started, now - visit.sent});
  }
  void Cancel(Visit&, Instant) override {}
  bool Turn(Visit&, Duration, Instant) override { return true; }
  bool inside() const override { return inside_; }
  double limit() const override { return 0; }
  int64_t waiting() const override { return 0; }

 private:
  std::vector<End>& ends_;
  const bool inside_;
};

struct Ran {
  std::vector<End> ends;
  Outcomes outcomes;

  size_t Count(Outcome outcome) const {
    size_t count = 0;
    for (const End& end : ends) count += end.outcome == outcome;
    return count;
  }
};

Ran PlayOpen(const Scenario& scenario, bool inside = false) {
  Ran run;
  run.outcomes =
      Simulate(scenario,
               {"open",
                [&](const GateContext&) {
                  return std::make_unique<OpenGate>(run.ends, inside);
                }},
               {.seed = 1});
  return run;
}

TEST(LeavingTest, AGuardInAProxyIsToldWhenACallerLeavesAndTheServiceWorksOn) {
  Scenario scenario = MakeScenario();
  scenario.seat = scenario::Seat::kProxy;

  const Ran run = PlayOpen(scenario);

  EXPECT_GT(run.Count(Outcome::kCancelled), 250u);
  for (const End& end : run.ends) {
    if (end.outcome == Outcome::kCancelled) {
      EXPECT_EQ(end.sent, 250ms);
    }
  }
  // Each of the 300 ended once, and the worker did nothing but what was late.
  EXPECT_EQ(run.ends.size(), 300u);
  EXPECT_LT(run.outcomes.report.all.good, 5u);
  EXPECT_GT(*run.outcomes.report.wasted_ratio, .95);
}

TEST(LeavingTest, AGuardInTheServiceIsToldWhenTheWorkIsDone) {
  const Ran service = PlayOpen(MakeScenario());
  EXPECT_EQ(service.Count(Outcome::kCancelled), 0u);
  EXPECT_GT(service.Count(Outcome::kOk), 100u);

  // So is what sits inside the server while the proxy is another program.
  Scenario scenario = MakeScenario();
  scenario.seat = scenario::Seat::kProxy;
  const Ran inside = PlayOpen(scenario, /*inside=*/true);
  EXPECT_EQ(inside.Count(Outcome::kCancelled), 0u);
  EXPECT_EQ(inside.outcomes.report.all.good, service.outcomes.report.all.good);
}

TEST(LeavingTest, AProxyThatGivesUpAnswersWithAnErrorAndTheServiceWorksOn) {
  Scenario scenario = MakeScenario();
  scenario.deadline = scenario.timeout = 30s;
  scenario.seat = scenario::Seat::kProxy;
  scenario.proxy_timeout = 150ms;

  const Ran run = PlayOpen(scenario);

  EXPECT_GT(run.Count(Outcome::kTimedOut), 290u);
  for (const End& end : run.ends) {
    if (end.outcome == Outcome::kTimedOut) {
      EXPECT_EQ(end.admitted, 150ms);
    }
  }
  const scenario::Figures& all = run.outcomes.report.all;
  // What the worker answers afterwards reaches nobody, in time as it is.
  EXPECT_LT(all.good, 5u);
  EXPECT_EQ(all.good + all.failed, 300u);
  EXPECT_EQ(run.outcomes.unanswered, 0u);
}

TEST(LeavingTest, WhatAProxyGaveUpIsTriedAgain) {
  Scenario scenario = MakeScenario();
  scenario.deadline = scenario.timeout = 30s;
  scenario.seat = scenario::Seat::kProxy;
  scenario.proxy_timeout = 150ms;
  scenario.retries = {.count = 1, .on_timeout = false, .on_shed = false};

  EXPECT_GT(PlayOpen(scenario).outcomes.report.amplification(), 1.9);
}

TEST(LeavingTest, TheGuardOfProductionLivesThroughAllOfIt) {
  Scenario scenario = MakeScenario();
  scenario.tiers[0].workers = 8;
  scenario.seat = scenario::Seat::kProxy;
  scenario.proxy_timeout = 200ms;
  scenario.tiers[0].failures = {{.ratio = .2, .after = 5ms}, {.ratio = .2}};
  for (const int workers : {1, 4}) {
    const Outcomes outcomes =
        Simulate(scenario, Weir("weir", nullptr, false, workers), {.seed = 1});
    const scenario::Figures& all = outcomes.report.all;
    EXPECT_EQ(all.offered, all.good + all.late + all.shed + all.failed);
    EXPECT_GT(all.good, all.offered / 20) << workers;
    EXPECT_EQ(outcomes.unanswered, 0u);
  }
}

TEST(FailureTest, WhatFailsFastTakesNoWorkerAndIsAskedOfNobody) {
  Scenario scenario = MakeScenario();
  scenario.phases[0].load = .5;
  scenario.tiers[0].failures = {
      {.ratio = .4, .from = 2s, .until = 8s, .after = 10ms}};

  const Ran run = PlayOpen(scenario);

  const scenario::Figures& all = run.outcomes.report.all;
  EXPECT_NEAR(static_cast<double>(all.failed), .4 * 30, 6);
  EXPECT_EQ(run.Count(Outcome::kError), all.failed);
  for (const End& end : run.ends) {
    if (end.outcome == Outcome::kError) {
      EXPECT_EQ(end.admitted, 10ms);
    }
  }
  EXPECT_EQ(*run.outcomes.report.wasted_ratio, 0);
  EXPECT_NEAR(all.goodput_ratio, 1, .03);
}

TEST(FailureTest, WhatFailsLateHasTakenItsWorker) {
  Scenario scenario = MakeScenario();
  scenario.phases[0].load = .5;
  scenario.tiers[0].failures = {{}};

  const Ran run = PlayOpen(scenario);

  EXPECT_GE(run.ends.size(), 49u);
  EXPECT_EQ(run.outcomes.report.all.good, 0u);
  for (const End& end : run.ends) EXPECT_EQ(end.admitted, 100ms);
  EXPECT_EQ(*run.outcomes.report.wasted_ratio, 1);
}

TEST(MixTest, APhaseMayHaveSharesOfItsOwn) {
  Scenario scenario = MakeScenario();
  scenario.routes = {{.name = "/a", .share = .5}, {.name = "/b", .share = .5}};
  scenario.tiers[0].workers = 100;
  scenario.phases = {{.name = "own", .duration = 10s, .load = .5},
                     {.name = "a", .duration = 10s, .load = .5, .mix = {1, 0}}};
  scenario.tiers[0].failures = {{.after = 1ms, .route = 1}};

  const scenario::Report report = PlayOpen(scenario).outcomes.report;

  EXPECT_NEAR(static_cast<double>(report.phases[0].failed), 2500, 150);
  EXPECT_EQ(report.phases[1].failed, 0u);
}

// One who takes a new name for each request is one, not many that each asked
// for too little to speak of.
TEST(FairnessTest, SeesWhoTakesManyNames) {
  Scenario scenario = MakeScenario();
  scenario.deadline = scenario.timeout = 1s;
  scenario.tiers[0].workers = 50;
  scenario.phases = {{.name = "all", .duration = 20s, .load = .5}};
  scenario.clients = {.count = 50, .hogs = {{.count = 100'000, .load = 10}}};
  const auto fixed = FindAlgorithms("fixed", nullptr);

  EXPECT_LT(Simulate(scenario, (*fixed)[0], {.seed = 1}).fairness, .2);

  // Many who ask for something are many.
  scenario.clients.hogs = {{.count = 100, .load = 10}};
  EXPECT_GT(Simulate(scenario, (*fixed)[0], {.seed = 1}).fairness, .3);
}

}  // namespace
}  // namespace weir::sim
