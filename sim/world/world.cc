#include "weir/sim/world.h"

#include <algorithm>

#include "clients.h"
#include "fabric.h"
#include "fleet.h"
#include "weir/scenario/capacity.h"

namespace weir::sim {

namespace {

// Inflight at which the entry tier is just busy: capacity times what a request
// takes when nothing queues.
double BestLimit(const scenario::Scenario& scenario, Duration at) {
  double seconds = 0;
  const scenario::Tier& entry = scenario.tiers.front();
  for (size_t i = 0; i < entry.stages.size(); ++i) {
    const scenario::Stage& stage = entry.stages[i];
    seconds += stage.ratio *
               (stage.route ? scenario.routes[*stage.route].share : 1) *
               scenario::MeanSeconds(scenario::SpanAt(entry, i, at));
  }
  return scenario::CapacityAt(scenario, at) * seconds;
}

class World final : private Handler {
 public:
  World(const scenario::Scenario& scenario, const Algorithm& algorithm,
        const RunOptions& options)
      : fabric_(scenario, algorithm, options),
        clients_(fabric_),
        series_(options.bin > Duration{}) {
    fabric_.entry = &clients_;
    TellMeanWork();
    fabric_.events.After(Metrics::kStep, *this);
  }

  Outcomes Run() {
    const scenario::Scenario& scenario = fabric_.scenario;
    // Until every caller has its answer or has given up, and the oracle has
    // said its last word.
    const Instant end(scenario.length() + 2 * Metrics::kStep +
                      std::max(scenario.timeout, fabric_.prompter.lag()));
    fabric_.events.RunUntil(end);
    fabric_.prompter.Close();
    const uint64_t unanswered = clients_.EndAll(end);
    return fabric_.metrics.Make(fabric_.events.executed(), unanswered);
  }

 private:
  void OnEvent(Instant now, uint64_t) override {
    const Duration at = now.time_since_epoch();
    fabric_.prompter.Advance();
    Gauges gauges;
    if (series_) {
      gauges = {fabric_.limit(), BestLimit(fabric_.scenario, at),
                fabric_.waiting()};
    }
    fabric_.metrics.CloseStep(now, gauges, fabric_.prompter.lag());
    TellMeanWork();
    fabric_.events.After(Metrics::kStep, *this);
  }

  void TellMeanWork() {
    if (!fabric_.prompter.reads()) {
      fabric_.prompter.SetMeanWork(fabric_.MeanWork(0));
    }
  }

  Fabric fabric_;
  Clients clients_;
  const bool series_;
};

}  // namespace

Outcomes Simulate(const scenario::Scenario& scenario,
                  const Algorithm& algorithm, const RunOptions& options) {
  // Scenarios that no file was read for may leave these to be filled in.
  scenario::Scenario checked = scenario;
  for (scenario::Class& cls : checked.classes) {
    if (cls.deadline == Duration{}) cls.deadline = checked.deadline;
    checked.timeout = std::max(checked.timeout, cls.deadline);
  }
  return World(checked, algorithm, options).Run();
}

}  // namespace weir::sim
