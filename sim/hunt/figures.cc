#include "weir/hunt/figures.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "weir/scenario/capacity.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/study.h"

namespace weir::hunt {
namespace {

double Less(const scenario::Figures& figures) {
  return std::min(figures.goodput_ratio, figures.work_ratio);
}

}  // namespace

bool Fits(const World& world, double share) {
  // Chosen: with less room, chance alone loses some of it.
  constexpr double kMost = .8;
  const scenario::Scenario& s = world.scenario;
  if (!s.tiers[0].pauses.empty() || !s.tiers[0].failures.empty()) return false;
  double capacity = scenario::CapacityAt(s, {});
  const double nominal = capacity;
  for (const scenario::Change& change : s.tiers[0].changes) {
    capacity =
        std::min(capacity, scenario::CapacityAt(s, change.at + change.over));
  }
  double load = 0;
  for (const scenario::Phase& phase : s.phases) {
    load = std::max({load, phase.load, phase.to});
    if (!phase.mix.empty()) return false;
  }
  return share * load * nominal <= kMost * capacity;
}

Figures FiguresOf(const World& world, const sim::Outcomes& outcomes) {
  const scenario::Report& report = outcomes.report;
  Figures figures{.goodput = report.all.goodput_ratio,
                  .work = report.all.work_ratio,
                  .false_shed = report.all.false_shed_ratio};
  for (const scenario::Figures& phase : report.phases) {
    if (phase.name == kAfter) figures.after = Less(phase);
  }
  const scenario::Scenario& s = world.scenario;
  const bool hogs = !s.clients.hogs.empty();
  if (s.classes.size() > 1 && !(hogs && s.clients.hogs[0].cls == 0) &&
      Fits(world, s.classes[0].share)) {
    figures.vital = Less(report.classes[0]);
  }
  if (hogs && Fits(world, 1)) figures.others = outcomes.others_good_ratio;
  return figures;
}

Result<std::vector<Figures>> Play(const World& world,
                                  const std::vector<std::string>& algorithms,
                                  const std::shared_ptr<const Policy>& policy) {
  std::vector<sim::Algorithm> found;
  for (const std::string& name : algorithms) {
    const bool told = name == "weir" && world.told_workers;
    auto one = sim::FindAlgorithms(told ? "weir-known" : name, policy,
                                   world.guard_workers);
    if (!one) return one.error();
    for (sim::Algorithm& algorithm : *one) {
      found.push_back(std::move(algorithm));
    }
  }
  if (found.size() != algorithms.size()) {
    return Error{"a name that stands for several algorithms cannot be hunted"};
  }
  const auto results =
      sim::RunStudy(world.scenario, found, {.seeds = {world.scenario.seed}});
  std::vector<Figures> figures;
  for (const auto& runs : results) {
    figures.push_back(FiguresOf(world, runs[0]));
  }
  return figures;
}

Result<std::vector<Played>> Hunt(const HuntOptions& options) {
  std::vector<Played> played(options.seeds.size());
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::optional<Error> failed;
  const auto work = [&] {
    for (size_t i = next++; i < played.size(); i = next++) {
      Played& one = played[i];
      one.world = DrawWorld(options.seeds[i]);
      one.figures.resize(options.algorithms.size());
      const auto known = options.record.find(one.world.seed);
      std::vector<std::string> names;
      std::vector<size_t> places;
      for (size_t a = 0; a < options.algorithms.size(); ++a) {
        if (a > 0 && known != options.record.end()) {
          const auto figures = known->second.find(options.algorithms[a]);
          if (figures != known->second.end()) {
            one.figures[a] = figures->second;
            continue;
          }
        }
        names.push_back(options.algorithms[a]);
        places.push_back(a);
      }
      const auto figures = Play(one.world, names, options.policy);
      if (!figures) {
        const std::lock_guard lock(mutex);
        failed = figures.error();
        next = played.size();
        return;
      }
      for (size_t k = 0; k < places.size(); ++k) {
        one.figures[places[k]] = (*figures)[k];
      }
      if (options.on_world) options.on_world();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < options.threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (failed) return *failed;
  return played;
}

}  // namespace weir::hunt
