// How many events per second the simulator runs on one core.
//
//   sim_bench RUNS  (5 when absent)
//
// events_per_second      a whole world: a fleet of 20 replicas at twice its
//                        capacity under the guard, clients that retry; oracle
//                        and metrics included
// queue_events_per_second  the event queue alone, 10 000 pending events that
//                        each schedule the next
// simulated_hour_s       wall time of an hour of a service that does 100
//                        requests a second, at nine tenths of its capacity
//
// All of cpu time of this thread, so that a busy machine does not count.

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "weir/scenario/random.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/event_queue.h"
#include "weir/sim/world.h"

namespace weir::sim {
namespace {

using namespace std::chrono_literals;
using scenario::Scenario;
using scenario::Span;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

Scenario MakeScenario(int32_t replicas, int32_t workers, double load,
                      Duration length) {
  Scenario scenario;
  scenario.name = "bench";
  scenario.deadline = scenario.timeout = 500ms;
  scenario.phases = {{.name = "all", .duration = length, .load = load}};
  scenario.classes = {{.criticality = Criticality::kVital, .share = .3},
                      {.criticality = Criticality::kSheddable, .share = .7}};
  scenario.routes = {{}};
  scenario.tiers = {
      {.workers = workers,
       .stages = {{.name = "cpu",
                   .time = {.distribution = Span::Distribution::kExponential,
                            .mean = 10ms}}},
       .replicas = replicas}};
  return scenario;
}

double WorldEventsPerSecond() {
  Scenario scenario = MakeScenario(20, 4, 2, 20s);
  scenario.tiers[0].network = {.mean = 500us};
  scenario.retries = {.count = 1};
  const Algorithm weir = Weir("weir", nullptr, false);
  const double start = CpuSeconds();
  const Outcomes outcomes = Simulate(scenario, weir, {.seed = 1});
  return static_cast<double>(outcomes.events) / (CpuSeconds() - start);
}

// Schedules itself again and again.
class Ping final : public Handler {
 public:
  explicit Ping(EventQueue& events) : events_(events), random_(1) {}
  void OnEvent(Instant, uint64_t arg) override {
    events_.After(Duration(1 + static_cast<int64_t>(random_.Below(1'000'000))),
                  *this, arg);
  }

 private:
  EventQueue& events_;
  scenario::Random random_;
};

double QueueEventsPerSecond() {
  EventQueue events;
  Ping ping(events);
  for (uint64_t i = 0; i < 10'000; ++i) ping.OnEvent(Instant{}, i);
  const double start = CpuSeconds();
  events.RunUntil(Instant(200ms));
  return static_cast<double>(events.executed()) / (CpuSeconds() - start);
}

double SimulatedHourSeconds() {
  const Scenario scenario = MakeScenario(1, 1, .9, 3600s);
  const double start = CpuSeconds();
  Simulate(scenario, Weir("weir", nullptr, false), {.seed = 1});
  return CpuSeconds() - start;
}

std::string ResultOf(std::string_view metric, std::string_view unit, int runs,
                     const std::function<double()>& measure) {
  std::vector<double> values;
  for (int i = 0; i < runs; ++i) values.push_back(measure());
  std::sort(values.begin(), values.end());
  return fmt::format(
      "{{\"metric\":\"{}\",\"value\":{:.6g},\"unit\":\"{}\",\"runs\":{},"
      "\"min\":{:.6g},\"max\":{:.6g}}}",
      metric, values[values.size() / 2], unit, runs, values.front(),
      values.back());
}

void Run(int runs) {
  fmt::print(
      "{{\"name\":\"sim\",\"results\":[{},{},{}]}}\n",
      ResultOf("events_per_second", "1/s", runs, WorldEventsPerSecond),
      ResultOf("queue_events_per_second", "1/s", runs, QueueEventsPerSecond),
      ResultOf("simulated_hour_s", "s", runs, SimulatedHourSeconds));
}

}  // namespace
}  // namespace weir::sim

int main(int argc, char** argv) {
  weir::sim::Run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 5);
}
