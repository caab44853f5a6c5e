// Prints a hash of all decisions, and the figures, of a world that uses every
// feature.  determinism_test.sh builds it with several compilers and compares.

#include <cstdio>
#include <string>

#include "weir/scenario/report.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/world.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using scenario::Scenario;
using scenario::Span;
using scenario::Stage;

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

Scenario MakeScenario() {
  Scenario scenario;
  scenario.name = "determinism";
  scenario.deadline = scenario.timeout = 500ms;
  scenario.phases = {{.name = "calm", .duration = 2s, .load = .8},
                     {.name = "bursts",
                      .duration = 3s,
                      .shape = scenario::Phase::Shape::kBursts,
                      .load = .8,
                      .to = 4,
                      .every = 500ms,
                      .peak_for = 100ms},
                     {.name = "flood", .duration = 3s, .load = 5}};
  scenario.classes = {{.criticality = Criticality::kVital, .share = .2},
                      {.criticality = Criticality::kDeferrable, .share = .8}};
  scenario.routes = {{}};
  scenario.clients = {.count = 100, .zipf = .9, .hogs = {{.load = .5}}};
  scenario.retries = {.count = 1};
  scenario.tiers = {
      {.workers = 4,
       .stages = {{.name = "io",
                   .kind = Stage::Kind::kIo,
                   .time = {.distribution = Span::Distribution::kLognormal,
                            .mean = 5ms}},
                  {.name = "cpu",
                   .time = {.distribution = Span::Distribution::kExponential,
                            .mean = 10ms}}},
       .changes = {{.at = 3s, .over = 1s, .speed = .7}},
       .pauses = {{.length = 50ms, .every = 1s, .regular = false}},
       .replicas = 2,
       .balancer = scenario::Balancer::kTwoChoices,
       .network = {.distribution = Span::Distribution::kExponential,
                   .mean = 300us},
       .calls = {{.tier = 1, .times = 2, .parallel = true}}},
      {.workers = 16,
       .discipline = scenario::Discipline::kSharing,
       .stages = {{.name = "cpu",
                   .time = {.distribution = Span::Distribution::kBimodal,
                            .mean = 5ms,
                            .fast = 1ms,
                            .slow = 41ms,
                            .slow_ratio = .1}}}}};
  return scenario;
}

void Print() {
  const Scenario scenario = MakeScenario();
  for (const bool known : {false, true}) {
    HashLog log;
    const Outcomes outcomes = Simulate(scenario, Weir("weir", nullptr, known),
                                       {.seed = 42, .log = &log});
    std::printf("%016llx %llu %s\n", static_cast<unsigned long long>(log.hash),
                static_cast<unsigned long long>(log.count),
                scenario::ToJson(outcomes.report).c_str());
  }
}

}  // namespace
}  // namespace weir::sim

int main() { weir::sim::Print(); }
