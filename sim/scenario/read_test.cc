#include "weir/scenario/read.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "weir/scenario/capacity.h"

namespace weir::scenario {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace fs = std::filesystem;

fs::path SourceDir() { return std::getenv("WEIR_SOURCE_DIR"); }

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// The scenario of `text`, which must be right.
Scenario Parse(const std::string& text) {
  auto scenario = ParseScenario(text, "test.toml");
  if (scenario) return *std::move(scenario);
  ADD_FAILURE() << scenario.complaints().Print();
  std::abort();
}

constexpr char kService[] = "[service]\nworkers = 20\ntime = '20ms'\n";
constexpr char kPhases[] =
    "phases = [{ name = 'calm', load = 0.8, duration = '10s' }]\n";

// What is wrong with a bad file is said in testdata/NAME.txt, word for word.
// To accept new words: WEIR_UPDATE_GOLDEN=1 ctest -R scenario_test.
TEST(ReadTest, EveryBadFileIsAnsweredWithItsMessage) {
  size_t files = 0;
  for (const auto& entry :
       fs::directory_iterator(SourceDir() / "sim/scenario/testdata")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    const std::string name = entry.path().filename().string();
    const auto scenario = ParseScenario(ReadFile(entry.path()), name);
    ASSERT_FALSE(scenario.ok()) << name;
    const std::string said = scenario.complaints().Print("nothing was started");
    fs::path golden = entry.path();
    golden.replace_extension(".txt");
    if (std::getenv("WEIR_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(golden) << said;
    }
    EXPECT_EQ(said, ReadFile(golden)) << name;
  }
  EXPECT_GE(files, 13u);
}

TEST(ReadTest, EveryScenarioOfTheProjectIsRight) {
  size_t files = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(SourceDir() / "sim/scenarios")) {
    if (entry.path().extension() != ".toml") continue;
    ++files;
    const auto scenario = LoadScenario(entry.path());
    ASSERT_TRUE(scenario.ok()) << scenario.complaints().Print();
    EXPECT_EQ(scenario->name, entry.path().stem());
  }
  EXPECT_GE(files, 2u);
}

TEST(ReadTest, FirstLightIsWhatItsCommentsSay) {
  const auto scenario =
      LoadScenario(SourceDir() / "sim/scenarios/first-light.toml");
  ASSERT_TRUE(scenario.ok());
  EXPECT_DOUBLE_EQ(CapacityAt(*scenario, {}), 1000);
  EXPECT_EQ(scenario->length(), seconds(35));
  ASSERT_EQ(scenario->classes.size(), 4u);
  EXPECT_EQ(scenario->classes[0].criticality, Criticality::kVital);
  EXPECT_DOUBLE_EQ(
      scenario->classes[0].share * OfferedAt(*scenario, seconds(20)), 500);
  EXPECT_EQ(scenario->classes[0].deadline, milliseconds(500));
  EXPECT_EQ(scenario->timeout, milliseconds(500));
  EXPECT_EQ(scenario->tiers[0].stages[0].time.distribution,
            Span::Distribution::kExponential);
  EXPECT_EQ(scenario->bounds.size(), 4u);
}

TEST(ReadTest, WhatIsNotSaidHasItsDefault) {
  const Scenario scenario =
      Parse(std::string("name = 'least'\n") + kPhases + kService);
  EXPECT_EQ(scenario.seed, 1u);
  EXPECT_EQ(scenario.deadline, seconds(1));
  EXPECT_EQ(scenario.arrivals, Spacing::kPoisson);
  ASSERT_EQ(scenario.classes.size(), 1u);
  EXPECT_EQ(scenario.classes[0].criticality, Criticality::kImportant);
  ASSERT_EQ(scenario.routes.size(), 1u);
  EXPECT_EQ(scenario.routes[0].name, "/");
  EXPECT_EQ(scenario.clients.count, 1000);
  EXPECT_EQ(scenario.retries.count, 0);
  EXPECT_EQ(scenario.hedging.after, Duration{});
  EXPECT_FALSE(scenario.patience);
  EXPECT_EQ(scenario.tiers[0].network.mean, Duration{});
  EXPECT_TRUE(scenario.bounds.empty());
}

TEST(ReadTest, ARateIsALoadOfTheCapacity) {
  const Scenario scenario =
      Parse(std::string("name = 'r'\nphases = [{ name = 'a', rate = '250/s', "
                        "duration = '1s' }]\n") +
            kService);
  EXPECT_DOUBLE_EQ(scenario.phases[0].load, .25);
}

TEST(ReadTest, StepsBecomePhasesOfTheirOwn) {
  const Scenario scenario = Parse(
      std::string("name = 's'\nphases = [{ name = 'ladder', shape = 'steps', "
                  "steps = [1, 1.1, 1.5], duration = '30s' }]\n") +
      kService);
  ASSERT_EQ(scenario.phases.size(), 3u);
  EXPECT_EQ(scenario.phases[1].name, "ladder-2@1.1");
  EXPECT_EQ(scenario.phases[1].load, 1.1);
  EXPECT_EQ(scenario.length(), seconds(90));
}

TEST(ReadTest, LoadsOfClassesMakeThePhaseAndItsShares) {
  const Scenario scenario = Parse(
      std::string("name = 'l'\nclasses = [{ name = 'sheddable', share = 0.5 }, "
                  "{ name = 'vital', share = 0.5 }]\nphases = [{ name = 'a', "
                  "loads = { vital = 0.3, sheddable = 3.6 }, duration = "
                  "'1s' }]\n") +
      kService);
  EXPECT_DOUBLE_EQ(scenario.phases[0].load, 3.9);
  ASSERT_EQ(scenario.phases[0].shares.size(), 2u);
  EXPECT_DOUBLE_EQ(scenario.phases[0].shares[0], .3 / 3.9);  // Vital is first.
}

// One file with every feature that the matrix of scenarios needs.
TEST(ReadTest, EverythingAtOnce) {
  const Scenario scenario = Parse(R"(
name = "everything"
arrivals = "constant"
seed = 9
deadline = "500ms"
timeout = "800ms"
patience = "5s"
routes = [{ name = "/locked", share = 0.2 }, { name = "/", share = 0.8 }]
classes = [
  { name = "vital", share = 0.1, deadline = "200ms" },
  { name = "sheddable", share = 0.9 },
]
phases = [
  { name = "warm", load = 0.5, duration = "5s", measured = false },
  { name = "up", shape = "ramp", load = 0.5, to = 2, duration = "5s" },
  { name = "waves", shape = "square", load = 0.5, to = 5, every = "15s", peak_for = "5s", duration = "90s" },
  { name = "bursts", shape = "bursts", load = 0.7, to = 2, every = "1s", peak_for = "50ms", duration = "60s" },
  { name = "drift", load = 1.5, relative_to = "now", duration = "10s" },
]
[clients]
count = 999
zipf = 0.9
cooperative_ratio = 0.5
hogs = [{ count = 16, load = 10, class = "vital", from = "5s", until = "10s" }]
closed = [{ count = 50, think = "1s", distribution = "constant", until = "20s" }]
[retries]
count = 3
on = ["timeout", "shed"]
backoff = "50ms"
jitter = 0.5
layers = 3
budget_ratio = 0.1
[hedging]
after = "100ms"
[client_guard]
processes = 4
throttle = { k = 1.1 }
[client_guard.retries]
per_window = 600
[[tiers]]
name = "front"
workers = 16
discipline = "sharing"
replicas = 20
balancer = "least-loaded"
client_guard = true
reject_cost = "50us"
network = { time = "1ms", distribution = "exponential" }
stages = [
  { name = "cpu", time = "5ms" },
  { name = "io", kind = "io", time = "5ms" },
  { name = "lock", kind = "lock", time = "1ms", route = "/locked" },
  { name = "db", kind = "pool", size = 20, ratio = 0.5, distribution = "bimodal", fast = "2ms", slow = "82ms", slow_ratio = 0.1 },
]
changes = [
  { at = "60s", stage = "io", time = "500ms" },
  { at = "20s", over = "30s", speed = 0.6, replicas = [0, 1] },
  { at = "40s", replicas = [2], up = false },
  { at = "70s", stage = "db", slow_ratio = 0.5 },
]
pauses = [{ length = "300ms", every = "5s", regular = false }]
calls = [{ tier = "leaf", times = 4, parallel = true }]
[[tiers]]
name = "leaf"
workers = 8
time = "10ms"
distribution = "lognormal"
sigma = 2
cancel_at_deadline = true
guard = false
[expect]
goodput_ratio = { min = 0.97 }
phase.waves.converge_ms = { max = 300 }
class.vital.latency_p99_ms = { max = 100 }
)");
  EXPECT_EQ(scenario.classes[0].deadline, milliseconds(200));
  EXPECT_EQ(scenario.patience, seconds(5));
  EXPECT_FALSE(scenario.phases[0].measured);
  EXPECT_EQ(scenario.phases[3].shape, Phase::Shape::kBursts);
  EXPECT_TRUE(scenario.phases[4].of_current);
  ASSERT_EQ(scenario.clients.hogs.size(), 1u);
  EXPECT_EQ(scenario.clients.hogs[0].until, seconds(10));
  ASSERT_EQ(scenario.clients.closed.size(), 1u);
  EXPECT_EQ(scenario.clients.closed[0].count, 50);
  EXPECT_EQ(scenario.clients.closed[0].think, seconds(1));
  EXPECT_FALSE(scenario.clients.closed[0].exponential);
  EXPECT_EQ(scenario.clients.closed[0].until, seconds(20));
  EXPECT_EQ(scenario.ClientCount(), 999 + 16 + 50);
  EXPECT_TRUE(scenario.retries.on_shed);
  EXPECT_FALSE(scenario.retries.on_error);
  EXPECT_EQ(scenario.hedging.after, milliseconds(100));
  // What plain callers do, within what a guard allows.
  EXPECT_EQ(scenario.callers.processes, 4);
  const ClientPolicy& callers = scenario.callers.policy;
  EXPECT_EQ(callers.throttle.k, 1.1);
  EXPECT_EQ(callers.retries.max_retries, 2);
  EXPECT_EQ(callers.retries.backoff.first, milliseconds(50));
  EXPECT_TRUE(callers.retries.on_refused);
  EXPECT_TRUE(callers.retries.on_timed_out);
  EXPECT_FALSE(callers.retries.on_error);
  EXPECT_EQ(callers.hedge_after, milliseconds(100));
  EXPECT_EQ(scenario.callers.allowance.retries, 600);
  ASSERT_EQ(scenario.tiers.size(), 2u);
  const Tier& front = scenario.tiers[0];
  EXPECT_EQ(front.discipline, Discipline::kSharing);
  EXPECT_EQ(front.network.distribution, Span::Distribution::kExponential);
  ASSERT_EQ(front.stages.size(), 4u);
  EXPECT_EQ(front.stages[2].route, 0);
  EXPECT_EQ(front.stages[3].time.slow, milliseconds(82));
  ASSERT_EQ(front.changes.size(), 4u);
  EXPECT_EQ(front.changes[0].at, seconds(20));  // In order.
  EXPECT_EQ(front.changes[0].replicas, (std::vector<uint16_t>{0, 1}));
  EXPECT_EQ(front.changes[2].stage, 1u);
  EXPECT_FALSE(front.pauses[0].regular);
  EXPECT_EQ(front.pauses[0].first, seconds(5));
  ASSERT_EQ(front.calls.size(), 1u);
  EXPECT_EQ(front.calls[0].tier, 1u);
  EXPECT_TRUE(front.calls[0].parallel);
  EXPECT_TRUE(scenario.tiers[1].cancel_at_deadline);
  EXPECT_FALSE(scenario.tiers[1].guard);
  ASSERT_EQ(scenario.bounds.size(), 3u);
  EXPECT_EQ(scenario.bounds[1].of, "waves");
}

TEST(ReadTest, StretchingKeepsLoadsAndServiceTimes) {
  Scenario scenario = Parse(std::string("name = 's'\n") + kPhases + kService +
                            "changes = [{ at = '5s', workers = 10 }]\n");
  scenario.Stretch(.1);
  EXPECT_EQ(scenario.length(), seconds(1));
  EXPECT_EQ(scenario.tiers[0].changes[0].at, milliseconds(500));
  EXPECT_DOUBLE_EQ(OfferedAt(scenario, {}), 800);
}

// docs/scenarios.md is written by hand; this keeps it complete.
TEST(ReadTest, TheDocumentNamesEveryKey) {
  const std::string text = ReadFile(SourceDir() / "docs/scenarios.md");
  for (const config::Row& row : ScenarioRows()) {
    const std::string key = row.path.substr(row.path.rfind('.') + 1);
    EXPECT_NE(text.find('`' + key + '`'), std::string::npos) << row.path;
  }
}

}  // namespace
}  // namespace weir::scenario
