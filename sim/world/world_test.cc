#include "weir/sim/world.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "weir/sim/algorithms.h"
#include "weir/sim/study.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using scenario::Scenario;
using scenario::Span;
using scenario::Stage;

Span Exponential(Duration mean) {
  return {.distribution = Span::Distribution::kExponential, .mean = mean};
}

// `workers` that take 10 ms (exponential) for each request, one class, at
// `load` times capacity; warm-up first.
Scenario MakeScenario(int32_t workers, double load, Duration length) {
  Scenario scenario;
  scenario.name = "test";
  scenario.deadline = 500ms;
  scenario.timeout = 500ms;
  scenario.phases = {
      {.name = "warm", .duration = 5s, .load = load, .measured = false},
      {.name = "main", .duration = length, .load = load}};
  scenario.classes = {{}};
  scenario.routes = {{}};
  scenario.tiers = {{.workers = workers,
                     .stages = {{.name = "cpu", .time = Exponential(10ms)}}}};
  return scenario;
}

Algorithm Named(std::string_view name) {
  Result<std::vector<Algorithm>> found = FindAlgorithms(name, nullptr);
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  return found.value().at(0);
}

// A gate that runs at most `limit` at once.
class LimitGate final : public Gate {
 public:
  explicit LimitGate(int64_t limit) : limit_(limit) {}
  Decision Offer(Visit&, Instant) override {
    if (inflight_ >= limit_) return {Verdict::kShed, Reason::kLimit, {}};
    ++inflight_;
    return {};
  }
  void Settle(Instant) override {}
  void Finish(Visit&, Outcome, Instant) override { --inflight_; }
  void Cancel(Visit&, Instant) override {}
  bool Turn(Visit&, Duration, Instant) override { return true; }
  double limit() const override { return static_cast<double>(limit_); }
  int64_t waiting() const override { return 0; }

 private:
  const int64_t limit_;
  int64_t inflight_ = 0;
};

Algorithm Limited(int64_t limit) {
  return {"limit", [limit](const GateContext&) {
            return std::make_unique<LimitGate>(limit);
          }};
}

double Milliseconds(Duration d) { return ToSeconds(d) * 1e3; }

// The probability that an M/M/workers/room system is full.
double LossOf(int workers, int room, double load) {
  const double offered = load * workers;
  double p = 1;
  double sum = 1;
  for (int k = 1; k <= room; ++k) {
    p *= offered / std::min(k, workers);
    sum += p;
  }
  return p / sum;
}

// Goal: the simulator loses what the theory of M/M/N/(N+B) says, from no room
// to wait at all to more than is ever needed.  Four standard errors of a
// share of that many requests, doubled because losses come in clusters.
TEST(WorldTest, LosesWhatTheoryOfBoundedQueuesSays) {
  struct Case {
    int workers;
    int room;
    double load;
  };
  for (const Case& c : {Case{16, 0, .9}, Case{16, 8, .9}, Case{16, 16, .95},
                        Case{16, 0, 1.0}, Case{16, 8, 1.2}, Case{16, 32, 1.2},
                        Case{64, 8, .95}, Case{1, 8, .9}, Case{1, 0, 1.0}}) {
    const Scenario scenario =
        MakeScenario(c.workers, c.load, 3s * (640 / c.workers));
    const Outcomes outcomes =
        Simulate(scenario, Limited(c.workers + c.room), {.seed = 7});
    const scenario::Figures& all = outcomes.report.all;
    const double offered = static_cast<double>(all.offered);
    const double expected = LossOf(c.workers, c.workers + c.room, c.load);
    EXPECT_NEAR(static_cast<double>(all.shed) / offered, expected,
                8 * std::sqrt(expected / offered))
        << c.workers << " workers, room " << c.room << ", load " << c.load;
  }
}

// Sojourn in M/M/1 is exponential with mean 1 / (mu - lambda).
TEST(WorldTest, LatencyOfOneWorkerIsThatOfTheory) {
  const Outcomes outcomes =
      Simulate(MakeScenario(1, .5, 5000s), Named("none"), {.seed = 3});
  const double mean_ms = 10 / (1 - .5);
  EXPECT_NEAR(Milliseconds(outcomes.report.all.p50), mean_ms * std::log(2.),
              .02 * mean_ms);
  EXPECT_NEAR(Milliseconds(outcomes.report.all.p99), mean_ms * std::log(100.),
              .04 * mean_ms * std::log(100.));
}

// p99 of the time in M/M/N/(N+B), exact, ms: computed from the distribution
// of the number found and the Erlang distribution of the wait.
TEST(WorldTest, TailLatencyOfManyWorkersIsThatOfTheory) {
  struct Case {
    int workers;
    int room;
    double load;
    double p99_ms;
  };
  for (const Case& c : {Case{16, 8, .9, 47}, Case{16, 128, .9, 54},
                        Case{16, 32, 1.2, 64}, Case{64, 128, .95, 49}}) {
    const Scenario scenario = MakeScenario(c.workers, c.load, 100s);
    const Outcomes outcomes =
        Simulate(scenario, Limited(c.workers + c.room), {.seed = 5});
    EXPECT_NEAR(Milliseconds(outcomes.report.all.p99), c.p99_ms, .04 * c.p99_ms)
        << c.workers << " workers, room " << c.room << ", load " << c.load;
  }
}

// Goal: whatever a world does, each request ends in exactly one way.
// Method: one scenario for each feature, most of them overloaded.
class ConservationTest : public testing::Test {
 protected:
  static void Check(const std::string& what, const Scenario& scenario) {
    for (const char* name : {"none", "weir", "weir-known"}) {
      SCOPED_TRACE(what + " under " + name);
      const Outcomes outcomes = Simulate(scenario, Named(name), {.seed = 2});
      const scenario::Report& report = outcomes.report;
      uint64_t by_class = 0;
      for (const scenario::Figures& f : report.phases) {
        EXPECT_EQ(f.offered, f.good + f.late + f.shed + f.failed) << f.name;
      }
      for (const scenario::Figures& f : report.classes) {
        EXPECT_EQ(f.offered, f.good + f.late + f.shed + f.failed) << f.name;
        by_class += f.offered;
      }
      EXPECT_EQ(by_class, report.all.offered);
      EXPECT_GT(report.all.offered, 500u);
      EXPECT_GE(report.all.attempts, report.all.offered);
      EXPECT_LE(report.all.work_ratio, 1.05);
    }
  }
};

TEST_F(ConservationTest, HoldsForEveryFeature) {
  Scenario base = MakeScenario(8, 1.5, 4s);
  base.classes = {{.criticality = Criticality::kVital, .share = .3},
                  {.criticality = Criticality::kSheddable, .share = .7}};
  Check("plain", base);

  Scenario sharing = base;
  sharing.tiers[0].discipline = scenario::Discipline::kSharing;
  Check("processor sharing", sharing);

  Scenario stages = base;
  stages.tiers[0].stages = {
      {.name = "io", .kind = Stage::Kind::kIo, .time = Exponential(5ms)},
      {.name = "lock",
       .kind = Stage::Kind::kLock,
       .time = Exponential(2ms),
       .ratio = .2},
      {.name = "pool",
       .kind = Stage::Kind::kPool,
       .time = Exponential(5ms),
       .size = 20},
      {.name = "cpu", .time = Exponential(10ms)}};
  Check("stages", stages);

  Scenario changes = base;
  changes.tiers[0].changes = {{.at = 6s, .workers = 2},
                              {.at = 7s, .over = 1s, .speed = .5}};
  changes.tiers[0].pauses = {
      {.length = 200ms, .every = 1s, .first = 500ms, .regular = false}};
  Check("changes and pauses", changes);

  Scenario cancels = base;
  cancels.tiers[0].cancel_at_deadline = true;
  cancels.tiers[0].reject_cost = 50us;
  Check("cancelling and costly refusals", cancels);

  Scenario retries = base;
  retries.retries = {.count = 2, .layers = 2};
  Check("retries in two layers", retries);
  retries.tiers[0].cancel_at_deadline = true;
  retries.retries.budget_ratio = .1;
  retries.patience = 2s;
  Check("budgeted retries with patience", retries);

  Scenario hedges = base;
  hedges.hedging.after = 30ms;
  Check("hedging", hedges);
  hedges.retries.count = 1;
  Check("hedging and retries", hedges);

  Scenario hogs = base;
  hogs.clients = {.count = 50, .zipf = 1, .hogs = {{.count = 2, .load = 3}}};
  Check("hogs", hogs);

  Scenario closed = base;
  closed.clients.closed = {{.count = 300, .think = 200ms, .cls = 1},
                           {.count = 20,
                            .think = 100ms,
                            .exponential = false,
                            .from = 6s,
                            .until = 8s}};
  Check("closed clients", closed);
  closed.retries = {.count = 1};
  Check("closed clients that retry", closed);

  Scenario fleet = base;
  fleet.tiers[0].replicas = 4;
  fleet.tiers[0].workers = 2;
  fleet.tiers[0].network = Exponential(1ms);
  fleet.tiers[0].changes = {{.at = 5500ms, .replicas = {1}, .up = false},
                            {.at = 7s, .replicas = {1}, .up = true}};
  for (const scenario::Balancer balancer :
       {scenario::Balancer::kRoundRobin, scenario::Balancer::kTwoChoices,
        scenario::Balancer::kLeastLoaded}) {
    fleet.tiers[0].balancer = balancer;
    Check("a fleet that loses one", fleet);
  }

  Scenario graph = base;
  graph.tiers.push_back(graph.tiers[0]);
  graph.tiers.push_back(graph.tiers[0]);
  graph.tiers[0].calls = {{.tier = 1, .times = 2}};
  graph.tiers[0].workers = 64;
  graph.tiers[1].calls = {{.tier = 2, .times = 3, .parallel = true}};
  graph.tiers[2].changes = {{.at = 6s, .up = false}, {.at = 7s, .up = true}};
  Check("calls in a row and at once", graph);
  graph.tiers[0].cancel_at_deadline = true;
  graph.tiers[1].cancel_at_deadline = true;
  Check("calls that are cancelled", graph);
}

// A hash of all decisions.
class HashLog final : public DecisionLog {
 public:
  void Add(const DecisionRecord& record) override {
    for (const uint64_t word :
         {static_cast<uint64_t>(record.at_ns), record.number,
          uint64_t{record.tier} << 32 | record.replica,
          static_cast<uint64_t>(record.verdict) << 8 |
              static_cast<uint64_t>(record.reason)}) {
      hash = (hash ^ word) * 0x100000001b3;
    }
    ++count;
  }
  uint64_t hash = 0xcbf29ce484222325;
  uint64_t count = 0;
};

TEST(WorldTest, EqualSeedsGiveEqualDecisionsAndOthersOthers) {
  const Scenario scenario = MakeScenario(8, 1.5, 5s);
  HashLog first;
  HashLog again;
  HashLog other;
  Simulate(scenario, Named("weir"), {.seed = 1, .log = &first});
  Simulate(scenario, Named("weir"), {.seed = 1, .log = &again});
  Simulate(scenario, Named("weir"), {.seed = 2, .log = &other});
  EXPECT_GT(first.count, 8000u);
  EXPECT_EQ(first.hash, again.hash);
  EXPECT_NE(first.hash, other.hash);
}

// What one algorithm refuses changes neither when others come nor what they
// take: the ideal is the same.
TEST(WorldTest, AllAlgorithmsFaceTheSameRequests) {
  const Scenario scenario = MakeScenario(8, 1.5, 5s);
  const Outcomes a = Simulate(scenario, Named("none"), {.seed = 1});
  const Outcomes b = Simulate(scenario, Named("weir"), {.seed = 1});
  EXPECT_EQ(a.report.all.offered, b.report.all.offered);
  EXPECT_EQ(a.report.all.ideal, b.report.all.ideal);
}

// The world without control collapses, the guard holds it: what the simulator
// is for.
TEST(WorldTest, TheGuardHoldsWhatCollapsesWithoutIt) {
  Scenario scenario = MakeScenario(16, 2, 30s);
  scenario.classes = {{.criticality = Criticality::kVital, .share = .2},
                      {.criticality = Criticality::kSheddable, .share = .8}};
  const Outcomes none = Simulate(scenario, Named("none"), {.seed = 1});
  const Outcomes weir = Simulate(scenario, Named("weir"), {.seed = 1});
  EXPECT_LT(none.report.all.work_ratio, .01);
  EXPECT_GT(weir.report.all.work_ratio, .98);
  EXPECT_GT(weir.report.classes[0].work_ratio, .98);
  EXPECT_LT(Milliseconds(weir.report.all.p99), 100);
}

// Goal: a queue whose first request reaches its deadline, to the nanosecond,
// while nothing moves is emptied, and the clock goes on.
TEST(WorldTest, APauseLongerThanTheDeadlineEndsForEveryQueue) {
  Scenario scenario = MakeScenario(4, .7, 3s);
  scenario.tiers[0].pauses = {{.length = 1s, .every = 2s, .first = 2s}};
  for (const char* name : {"folly-codel+queue", "fixed+queue", "weir"}) {
    const Outcomes run = Simulate(scenario, Named(name), {});
    EXPECT_LT(run.events, 20'000u) << name;
    EXPECT_GT(run.report.all.good, 0u) << name;
  }
}

TEST(WorldTest, RetriesInLayersMultiply) {
  Scenario scenario = MakeScenario(4, .5, 5s);
  scenario.retries = {.count = 2, .backoff = 10ms, .layers = 3};
  // Nothing is ever let in, so every attempt that may be made is made.
  const Outcomes outcomes = Simulate(scenario, Limited(0), {.seed = 1});
  EXPECT_EQ(outcomes.report.all.attempts, 27 * outcomes.report.all.offered);
}

TEST(WorldTest, TheSeriesHasABinForEachStepOfTheScenario) {
  const Scenario scenario = MakeScenario(8, 1.5, 5s);
  const Outcomes outcomes =
      Simulate(scenario, Named("weir"), {.seed = 1, .bin = 500ms});
  ASSERT_EQ(outcomes.series.size(), 20u);
  double offered = 0;
  for (const Bin& bin : outcomes.series) {
    offered += bin.offered * .5;
    EXPECT_NEAR(bin.best_limit, 8, 1e-9);
  }
  const scenario::Report& report = outcomes.report;
  EXPECT_EQ(offered, static_cast<double>(report.phases[0].offered +
                                         report.phases[1].offered));
}

// What the machine repairman's formula says: `clients` that think for `think`
// and are served for `service` by `workers`, both exponential.  Requests per
// second that are answered, and the mean time that an answer takes.
struct Repairman {
  double per_second = 0;
  double latency = 0;
};
Repairman RepairmanOf(int clients, double think, int workers, double service) {
  double weight = 1;  // Of n requests in the service.
  double sum = 1;
  double busy = 0;
  for (int n = 1; n <= clients; ++n) {
    weight *= (clients - n + 1) * service / (std::min(n, workers) * think);
    sum += weight;
    busy += weight * std::min(n, workers);
  }
  Repairman result;
  result.per_second = busy / sum / service;
  result.latency = clients / result.per_second - think;
  return result;
}

// Goal: closed clients make the closed M/M/N queue.
// Method: throughput against the formula, below, at and far above saturation.
// What a client waits is what is left of its cycle, so it is held to the same
// formula by throughput alone.  Five deviations of 200 s, about a percent.
TEST(ClosedClientsTest, AgreeWithTheMachineRepairman) {
  for (const auto& [clients, think, workers] :
       {std::tuple{8, 40ms, 4}, {60, 100ms, 6}, {200, 100ms, 8}, {3, 5ms, 1}}) {
    SCOPED_TRACE(clients);
    Scenario scenario = MakeScenario(workers, 0, 200s);
    scenario.deadline = scenario.timeout = 100s;
    scenario.clients.closed = {{.count = clients, .think = think}};
    const Outcomes outcomes = Simulate(scenario, Named("none"), {.seed = 3});
    const Repairman expected =
        RepairmanOf(clients, ToSeconds(think), workers, .01);
    EXPECT_NEAR(static_cast<double>(outcomes.report.all.good) / 200,
                expected.per_second, .012 * expected.per_second);
    // The median of a queue that is never empty lies near its mean.
    if (clients == 200) {
      EXPECT_NEAR(ToSeconds(outcomes.report.all.p50), expected.latency,
                  .05 * expected.latency);
    }
  }
}

TEST(ClosedClientsTest, NeverAskForMoreThanTheyAre) {
  Scenario scenario = MakeScenario(2, 0, 10s);
  scenario.clients.closed = {{.count = 12, .think = 1ms}};
  EXPECT_EQ(Simulate(scenario, Limited(12), {.seed = 1}).report.all.shed, 0u);
  EXPECT_GT(Simulate(scenario, Limited(11), {.seed = 1}).report.all.shed, 0u);
}

// A client that gave up does not wait for the answer that still comes.
TEST(ClosedClientsTest, GiveUpAtTheTimeoutAndAskAgain) {
  Scenario scenario = MakeScenario(1, 0, 10s);
  scenario.deadline = scenario.timeout = 100ms;
  scenario.tiers[0].stages[0].time = {.mean = 1s};
  scenario.clients.closed = {
      {.count = 1, .think = 100ms, .exponential = false}};
  const Outcomes outcomes = Simulate(scenario, Named("none"), {.seed = 1});
  EXPECT_EQ(outcomes.report.all.offered, 50u);
  EXPECT_EQ(outcomes.report.all.late, 50u);
}

TEST(ClosedClientsTest, AskBetweenTheirTimesOnly) {
  Scenario scenario = MakeScenario(4, 0, 10s);
  scenario.phases.push_back({.name = "end", .duration = 5s});
  scenario.clients.closed = {
      {.count = 5, .think = 10ms, .from = 6s, .until = 14s}};
  const Outcomes outcomes = Simulate(scenario, Named("none"), {.seed = 1});
  EXPECT_EQ(outcomes.report.phases[0].offered, 0u);
  EXPECT_GT(outcomes.report.phases[1].offered, 100u);
  EXPECT_EQ(outcomes.report.phases[2].offered, 0u);
}

TEST(WorldTest, AGuardOfSeveralWorkersLosesNoWorkAndNoVitalRequest) {
  Scenario scenario = MakeScenario(16, 3, 20s);
  scenario.classes = {{.criticality = Criticality::kVital, .share = .1},
                      {.criticality = Criticality::kSheddable, .share = .9}};
  std::vector<std::string> reports;
  for (const int workers : {1, 2, 8}) {
    const scenario::Report report =
        Simulate(scenario, Weir("weir", nullptr, false, workers), {.seed = 1})
            .report;
    EXPECT_GT(Metric(report.all, "work_ratio"), .98) << workers;
    EXPECT_GT(Metric(report.classes[0], "good_ratio"), .999) << workers;
    reports.push_back(scenario::ToJson(report));
  }
  // Each worker has a queue of its own, so these are other runs.
  EXPECT_NE(reports[0], reports[1]);
  EXPECT_NE(reports[1], reports[2]);
}

TEST(WorldTest, WithSeveralGuardWorkersNobodyWaitsMuchLonger) {
  Scenario scenario = MakeScenario(16, 3, 20s);
  scenario.tiers[0].stages[0].time = {.mean = 10ms};  // Constant.
  const auto p99 = [&](int workers) {
    const Outcomes outcomes =
        Simulate(scenario, Weir("weir", nullptr, false, workers), {.seed = 1});
    return Metric(outcomes.report.all, "latency_p99_ms").value_or(0);
  };
  const double alone = p99(1);
  EXPECT_GT(alone, 10);
  EXPECT_LT(p99(4), 1.2 * alone);
  EXPECT_LT(p99(8), 1.3 * alone);
}

TEST(WorldTest, SeveralGuardWorkersKeepUpWithAHundredTimesTheCapacity) {
  Scenario scenario = MakeScenario(16, 100, 3s);
  scenario.phases[0].duration = 1s;
  scenario.classes = {{.criticality = Criticality::kVital, .share = .1},
                      {.criticality = Criticality::kImportant, .share = .3},
                      {.criticality = Criticality::kSheddable, .share = .6}};
  scenario.clients = {.count = 1000, .zipf = .9};
  const Outcomes outcomes =
      Simulate(scenario, Weir("weir", nullptr, false, 8), {.seed = 1});
  EXPECT_GT(Metric(outcomes.report.all, "work_ratio"), .95);
}

TEST(StudyTest, ThreadsChangeNoResult) {
  const Scenario scenario = MakeScenario(8, 1.5, 3s);
  Result<std::vector<Algorithm>> algorithms =
      FindAlgorithms("weir,fixed,brpc-auto+queue,folly-codel", nullptr);
  ASSERT_TRUE(algorithms);
  const auto serial = RunStudy(scenario, *algorithms, {.seeds = {1, 2, 3}});
  const auto parallel =
      RunStudy(scenario, *algorithms, {.seeds = {1, 2, 3}, .threads = 4});
  for (size_t a = 0; a < serial.size(); ++a) {
    for (size_t seed = 0; seed < serial[a].size(); ++seed) {
      EXPECT_EQ(scenario::ToJson(serial[a][seed].report),
                scenario::ToJson(parallel[a][seed].report));
      EXPECT_EQ(serial[a][seed].events, parallel[a][seed].events);
    }
  }
}

// Goal: a run that reads what another one wrote down comes out as one that
// draws and reckons everything itself.
// Method: a world in which all of it matters (two tiers, routes, a change of
// service times, pauses, retries, ramps), series included; the first run of a
// study writes, the last one alone has nothing to read.
TEST(StudyTest, RunsThatShareAScriptComeOutAsThoseThatDoNot) {
  Scenario scenario = MakeScenario(8, 1.2, 4s);
  scenario.phases.push_back({.name = "ramp",
                             .duration = 3s,
                             .shape = scenario::Phase::Shape::kRamp,
                             .load = .5,
                             .to = 3});
  scenario.classes = {{.criticality = Criticality::kVital, .share = .3},
                      {.criticality = Criticality::kSheddable, .share = .7}};
  scenario.routes = {{.name = "a", .share = .5}, {.name = "b", .share = .5}};
  scenario.tiers[0].stages.push_back({.name = "io",
                                      .kind = Stage::Kind::kIo,
                                      .time = Exponential(5ms),
                                      .ratio = .5,
                                      .route = uint16_t{1}});
  scenario.tiers[0].reject_cost = 100us;
  scenario.tiers[0].calls = {{.tier = 1, .times = 2}};
  scenario.tiers[0].changes = {{.at = 6s, .speed = .5}};
  scenario.tiers[0].pauses = {{.length = 100ms, .every = 2s, .first = 3s}};
  scenario.tiers.push_back(
      {.workers = 8, .stages = {{.name = "cpu", .time = Exponential(1ms)}}});
  scenario.retries = {.count = 2};
  Result<std::vector<Algorithm>> algorithms =
      FindAlgorithms("weir,none,fixed+queue", nullptr);
  ASSERT_TRUE(algorithms);
  const auto shared =
      RunStudy(scenario, *algorithms, {.seeds = {7}, .bin = 500ms});
  for (size_t a = 0; a < shared.size(); ++a) {
    const Outcomes alone =
        Simulate(scenario, (*algorithms)[a], {.seed = 7, .bin = 500ms});
    const Outcomes& reader = shared[a][0];
    EXPECT_GT(alone.report.all.ideal, 0);
    EXPECT_EQ(scenario::ToJson(reader.report), scenario::ToJson(alone.report));
    EXPECT_EQ(reader.events, alone.events);
    EXPECT_EQ(reader.fairness, alone.fairness);
    ASSERT_EQ(reader.series.size(), alone.series.size());
    for (size_t i = 0; i < alone.series.size(); ++i) {
      ASSERT_EQ(reader.series[i].ideal, alone.series[i].ideal) << i;
      ASSERT_EQ(reader.series[i].good, alone.series[i].good) << i;
    }
  }
}

// Clients that try three times in `layers` layers, at three times capacity for
// five seconds.
Scenario MakeStorm(int32_t layers) {
  Scenario scenario = MakeScenario(16, .8, 5s);
  scenario.phases.push_back({.name = "storm", .duration = 5s, .load = 2.4});
  scenario.phases.push_back({.name = "after", .duration = 10s, .load = .8});
  scenario.retries = {.count = 2, .layers = layers};
  scenario.tiers[0].client_guard = true;
  scenario.callers.policy.retries.on_timed_out = true;
  return scenario;
}

TEST(CallersTest, AGuardKeepsAStormOfRetriesAtHome) {
  for (const int32_t layers : {1, 2}) {
    const Scenario storm = MakeStorm(layers);
    const scenario::Report plain =
        Simulate(storm, Named("weir@plain"), {.seed = 3}).report;
    const scenario::Report guarded =
        Simulate(storm, Named("weir"), {.seed = 3}).report;
    EXPECT_GT(plain.amplification(), 1.4) << layers;
    EXPECT_LT(guarded.amplification(), 1.02) << layers;
    EXPECT_GT(guarded.phases[3].work_ratio, .98) << layers;
    EXPECT_LT(guarded.phases[3].recover, 1s) << layers;
    EXPECT_EQ(guarded.all.good + guarded.all.late + guarded.all.shed +
                  guarded.all.failed,
              guarded.all.offered);
  }
}

// Refuses all, and keeps how often each was tried before.
class RefusingGate final : public Gate {
 public:
  explicit RefusingGate(std::vector<int>& tries) : tries_(tries) {}
  Decision Offer(Visit& visit, Instant) override {
    ++tries_.at(visit.request.attempt);
    return {Verdict::kShed, Reason::kLevel, {}};
  }
  void Settle(Instant) override {}
  void Finish(Visit&, Outcome, Instant) override {}
  void Cancel(Visit&, Instant) override {}
  bool Turn(Visit&, Duration, Instant) override { return true; }
  double limit() const override { return 0; }
  int64_t waiting() const override { return 0; }

 private:
  std::vector<int>& tries_;
};

TEST(CallersTest, AGateIsToldHowOftenARequestWasTried) {
  Scenario scenario = MakeScenario(1, 1, 5s);
  scenario.retries = {.count = 2};
  std::vector<int> tries(3);
  const Algorithm refusing{"refusing", [&](const GateContext&) {
                             return std::make_unique<RefusingGate>(tries);
                           }};
  const Outcomes outcomes = Simulate(scenario, refusing, {.seed = 1});
  const auto offered = static_cast<int>(outcomes.report.phases[0].offered +
                                        outcomes.report.phases[1].offered);
  EXPECT_EQ(tries, std::vector<int>(3, offered));
}

// First, second and third attempts, and how many of each were refused.
struct Refusals final : DecisionLog {
  void Add(const DecisionRecord& record) override {
    const size_t attempt = record.number >> 48;
    ++asked.at(attempt);
    refused.at(attempt) += record.verdict == Verdict::kShed;
  }
  double Ratio(size_t attempt) const {
    return static_cast<double>(refused.at(attempt)) /
           static_cast<double>(asked.at(attempt));
  }
  std::array<int64_t, 3> asked{};
  std::array<int64_t, 3> refused{};
};

// All are one client's, so that none of them used more than another.
TEST(CallersTest, OfEqualClientsRetriesAreShedBeforeFirstAttempts) {
  for (const double load : {1.3, 2., 3.}) {
    Scenario scenario = MakeScenario(16, load, 20s);
    scenario.clients.count = 1;
    scenario.retries = {.count = 2, .backoff = 200ms};
    const auto play = [&](const char* name) {
      Refusals refusals;
      const Outcomes run =
          Simulate(scenario, Named(name), {.seed = 3, .log = &refusals});
      EXPECT_GT(run.report.all.work_ratio, .97) << name;
      return refusals;
    };
    const Refusals weir = play("weir@plain");
    EXPECT_GT(weir.Ratio(1), 2 * weir.Ratio(0)) << load;
    EXPECT_GT(weir.Ratio(2), 2 * weir.Ratio(0)) << load;
    // Who does not ask for the attempt refuses all alike.
    const Refusals fixed = play("fixed+queue");
    EXPECT_NEAR(fixed.Ratio(1), fixed.Ratio(0), .02) << load;
  }
}

// In each phase others flood.  What one gets of the time that the modest leave
// is not what another could have had in another phase.
TEST(WorldTest, FairnessIsByWhatThereWasToShareInEachPhase) {
  Scenario scenario = MakeScenario(16, .6, 10s);
  scenario.phases.push_back({.name = "sixteen", .duration = 10s, .load = .6});
  scenario.clients.hogs = {{.load = 10, .until = 15s},
                           {.count = 16, .load = 10, .from = 15s}};
  EXPECT_GT(Simulate(scenario, Named("weir"), {.seed = 1}).fairness, .99);
  EXPECT_LT(Simulate(scenario, Named("fixed"), {.seed = 1}).fairness, .2);
}

TEST(CallersTest, AGuardMendsAStormThatAPlainServerDoesNotSurvive) {
  const Scenario storm = MakeStorm(1);
  const auto after = [&](std::string_view name) {
    return Simulate(storm, Named(name), {.seed = 3})
        .report.phases[3]
        .goodput_ratio;
  };
  EXPECT_LT(after("none"), .1);
  EXPECT_GT(after("none@weir"), .5);
}

// Front calls middle, which calls a leaf that is gone.  Each would try three
// times; only middle, directly above the leaf, does.
TEST(CallersTest, OnlyTheLayerAboveTheFailureTriesAgain) {
  Scenario scenario = MakeScenario(64, .1, 5s);
  scenario::Tier middle = scenario.tiers[0];
  scenario::Tier leaf = scenario.tiers[0];
  scenario.tiers[0].calls = {{.tier = 1}};
  middle.calls = {{.tier = 2}};
  leaf.changes = {{.at = 5s, .up = false}};
  scenario.tiers.push_back(middle);
  scenario.tiers.push_back(leaf);
  for (scenario::Tier& tier : scenario.tiers) tier.client_guard = true;
  scenario.retries.count = 2;
  ClientPolicy& policy = scenario.callers.policy;
  policy.throttle.mode = policy.breaker.mode = StageMode::kOff;
  policy.tokens = {.max_tokens = 1000, .token_ratio = 1000};
  scenario.callers.allowance.retries = 100'000;
  const scenario::Report report =
      Simulate(scenario, Named("weir"), {.seed = 3}).report;
  EXPECT_EQ(report.all.good, 0u);
  // But for the few that were on their way when it went.
  EXPECT_LT(report.amplification(), 1.02);
}

TEST(AlgorithmsTest, CallersAreNamedAfterAnAt) {
  const auto found =
      FindAlgorithms("weir,none@grpc-retry-throttle,fixed@weir", nullptr);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[0].callers.kind, CallerSide::Kind::kGuard);
  EXPECT_FALSE((*found)[0].callers.everywhere);
  EXPECT_EQ((*found)[1].name, "none@grpc-retry-throttle");
  EXPECT_EQ((*found)[1].callers.kind, CallerSide::Kind::kLaw);
  EXPECT_TRUE((*found)[2].callers.everywhere);
  const auto unknown = FindAlgorithms("none@grpc-retry-throtle", nullptr);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "no caller's side is called `grpc-retry-throtle`; the nearest is "
            "`grpc-retry-throttle`");
}

TEST(AlgorithmsTest, AnUnknownNameIsAnsweredWithTheNearest) {
  const auto found = FindAlgorithms("weir,fixd", nullptr);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "no algorithm is called `fixd`; the nearest is `fixed`");
}

}  // namespace
}  // namespace weir::sim
