#include "weir/hunt/change.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace weir::hunt {
namespace {

using scenario::Phase;
using scenario::Scenario;
using scenario::Span;
using scenario::Stage;
using scenario::Tier;

using Step = std::function<void(World&)>;

// One digit: 347 becomes 300.
Duration Rounded(Duration time) {
  int64_t unit = 1;
  while (time.count() / unit >= 10) unit *= 10;
  return time.count() == 0 ? time : Duration(time.count() / unit * unit);
}

double Rounded(double number) {
  if (number <= 0) return number;
  double unit = 1;
  while (number * unit < 1) unit *= 10;
  while (number * unit >= 10) unit /= 10;
  return static_cast<double>(static_cast<int64_t>(number * unit + .5)) / unit;
}

int32_t Rounded(int32_t count) {
  return static_cast<int32_t>(Rounded(static_cast<double>(count)));
}

// Gives phase `i` another length; what happens later moves with it.
void SetLength(Scenario& s, size_t i, Duration length) {
  const Duration start = s.PhaseStart(i);
  const Duration end = start + s.phases[i].duration;
  const auto move = [&](Duration& at) {
    if (at >= end) {
      at += length - (end - start);
    } else if (at > start + length) {
      at = start + length;
    }
  };
  for (Tier& tier : s.tiers) {
    for (scenario::Change& change : tier.changes) move(change.at);
    for (scenario::Pause& pause : tier.pauses) move(pause.first);
    for (scenario::Failure& failure : tier.failures) {
      move(failure.from);
      if (failure.until) move(*failure.until);
    }
  }
  for (scenario::Hog& hog : s.clients.hogs) move(hog.from);
  if (length > Duration{}) {
    s.phases[i].duration = length;
  } else {
    s.phases.erase(s.phases.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// Not below what callers and service need to come to an end of anything: a
// shorter world is lost by its edges.
void Shorten(Scenario& s, size_t i, Duration length) {
  const Duration least =
      std::max<Duration>(4 * s.deadline, std::chrono::seconds(2));
  const Duration now = s.phases[i].duration;
  SetLength(s, i, std::min(now, std::max(Rounded(length), least)));
}

// The last phase is as long as a deadline, whatever that is now.
bool FinishChanged(World& world) {
  Scenario& s = world.scenario;
  if (s.phases.back().name == kEnd) s.phases.back().duration = s.deadline;
  return Finish(world) && Playable(world.scenario);
}

void RemoveStage(Scenario& s, size_t i) {
  Tier& tier = s.tiers[0];
  tier.stages.erase(tier.stages.begin() + static_cast<std::ptrdiff_t>(i));
  std::erase_if(tier.changes, [i](const scenario::Change& change) {
    return (change.time || change.slow_ratio) && change.stage == i;
  });
  for (scenario::Change& change : tier.changes) {
    if (change.stage > i) --change.stage;
  }
}

void OneRoute(Scenario& s) {
  s.routes = {{}};
  for (Stage& stage : s.tiers[0].stages) stage.route.reset();
  for (scenario::Failure& failure : s.tiers[0].failures) failure.route.reset();
  for (Phase& phase : s.phases) phase.mix.clear();
}

void SimplerSpan(Span& span) {
  using enum Span::Distribution;
  if (span.distribution == kBimodal) {
    span.fast = Rounded(span.fast);
    span.slow = Rounded(span.slow);
    span.slow_ratio = Rounded(span.slow_ratio);
  } else {
    span.mean = Rounded(span.mean);
    span.sigma = Rounded(span.sigma);
  }
}

// All that may be simpler, the biggest things first.
std::vector<Step> Steps(const World& world) {
  const Scenario& now = world.scenario;
  std::vector<Step> steps;
  const auto add = [&steps](auto change) {
    steps.push_back([change](World& w) { change(w.scenario); });
  };
  steps.push_back([](World& w) { w.guard_workers = 1; });
  steps.push_back([](World& w) { w.told_workers = false; });
  add([](Scenario& s) { s.retries = {}; });
  add([](Scenario& s) { s.clients = {}; });
  add([](Scenario& s) { s.clients.hogs.clear(); });
  add([](Scenario& s) {
    s.classes = {{.deadline = s.deadline}};
    for (Phase& phase : s.phases) phase.shares.clear();
    for (scenario::Hog& hog : s.clients.hogs) hog.cls = 0;
  });
  add([](Scenario& s) { s.proxy_timeout.reset(); });
  add([](Scenario& s) {
    s.proxy_timeout.reset();
    s.seat = scenario::Seat::kService;
  });
  add([](Scenario& s) { s.timeout = s.deadline; });
  add([](Scenario& s) { s.arrivals = scenario::Spacing::kPoisson; });
  add([](Scenario& s) { s.tiers[0].reject_cost = {}; });
  add([](Scenario& s) { s.tiers[0].cancel_at_deadline = false; });
  add([](Scenario& s) { s.tiers[0].discipline = scenario::Discipline::kFcfs; });
  add([](Scenario& s) { s.tiers[0].pauses.clear(); });
  add([](Scenario& s) { s.tiers[0].failures.clear(); });
  add([](Scenario& s) { s.tiers[0].changes.clear(); });
  add(OneRoute);
  for (size_t i = now.tiers[0].stages.size(); i-- > 0;) {
    add([i](Scenario& s) {
      if (s.tiers[0].stages.size() > 1) RemoveStage(s, i);
    });
    add([i](Scenario& s) {
      Span& span = s.tiers[0].stages[i].time;
      if (span.distribution == Span::Distribution::kBimodal) return;
      span = {.mean = span.mean};
    });
    add([i](Scenario& s) { s.tiers[0].stages[i].ratio = 1; });
    add([i](Scenario& s) { SimplerSpan(s.tiers[0].stages[i].time); });
  }
  for (size_t i = now.phases.size(); i-- > 0;) {
    if (now.phases[i].name == kEnd) continue;
    add([i](Scenario& s) {
      if (s.phases.size() > 2) SetLength(s, i, {});
    });
    add([i](Scenario& s) { s.phases[i].shape = Phase::Shape::kConstant; });
    add([i](Scenario& s) { Shorten(s, i, s.phases[i].duration / 2); });
    add([i](Scenario& s) { Shorten(s, i, s.phases[i].duration); });
    add([i](Scenario& s) {
      Phase& phase = s.phases[i];
      phase.load = Rounded(phase.load);
      phase.to = Rounded(phase.to);
      phase.every = Rounded(phase.every);
      phase.peak_for = Rounded(phase.peak_for);
    });
  }
  for (size_t i = now.tiers[0].changes.size(); i-- > 0;) {
    add([i](Scenario& s) {
      scenario::Change& change = s.tiers[0].changes[i];
      change.over = {};
      if (change.time) change.time = Rounded(*change.time);
      if (change.speed) change.speed = Rounded(*change.speed);
    });
  }
  add([](Scenario& s) { s.tiers[0].workers = (s.tiers[0].workers + 1) / 2; });
  add([](Scenario& s) { s.tiers[0].workers = Rounded(s.tiers[0].workers); });
  add([](Scenario& s) {
    const bool same = s.timeout == s.deadline;
    s.deadline = Rounded(s.deadline);
    for (scenario::Class& cls : s.classes) cls.deadline = s.deadline;
    s.timeout = same ? s.deadline : Rounded(s.timeout);
  });
  return steps;
}

// --- mutation ---

class Mutator {
 public:
  Mutator(World& world, scenario::Random& random)
      : world_(world), s_(world.scenario), random_(random) {}

  void Change() {
    switch (random_.Below(14)) {
      case 0:
        Times(tier().workers, 1);
        return;
      case 1:
        for (Stage& stage : tier().stages) Times(stage.time);
        return;
      case 2:
        Times(AnyOf(tier().stages).time);
        return;
      case 3: {
        const double factor = Factor();
        const auto times = [factor](Duration& time) {
          time = FromSeconds(ToSeconds(time) * factor);
        };
        times(s_.deadline);
        times(s_.timeout);
        for (scenario::Class& cls : s_.classes) cls.deadline = s_.deadline;
        return;
      }
      case 4:
        s_.timeout = FromSeconds(ToSeconds(s_.deadline) *
                                 (random_.Below(2) == 0 ? 1 : 1 + Factor()));
        return;
      case 5: {
        const size_t i = random_.Below(s_.phases.size());
        SetLength(s_, i,
                  FromSeconds(ToSeconds(s_.phases[i].duration) * Factor()));
        return;
      }
      case 6:
      case 7: {
        Phase& phase = AnyOf(s_.phases);
        phase.load *= Factor();
        phase.to *= Factor();
        return;
      }
      case 8: {
        Phase& phase = AnyOf(s_.phases);
        Times(phase.every);
        Times(phase.peak_for);
        phase.peak_for = std::min(phase.peak_for, phase.every);
        return;
      }
      case 9:
        s_.seat = s_.seat == scenario::Seat::kProxy ? scenario::Seat::kService
                                                    : scenario::Seat::kProxy;
        s_.proxy_timeout.reset();
        return;
      case 10:
        s_.retries.count = static_cast<int32_t>(random_.Below(3));
        return;
      case 11:
        world_.guard_workers = 1 + static_cast<int>(random_.Below(4));
        return;
      case 12:
        world_.told_workers = !world_.told_workers;
        return;
      default:
        for (scenario::Change& change : tier().changes) {
          if (change.time) Times(*change.time);
          if (change.speed && *change.speed != 1) {
            change.speed = std::clamp(*change.speed * Factor(), .01, 10.);
          }
        }
        for (scenario::Pause& pause : tier().pauses) Times(pause.length);
        for (scenario::Failure& failure : tier().failures) {
          if (failure.after) Times(*failure.after);
        }
        return;
    }
  }

 private:
  Tier& tier() { return s_.tiers[0]; }
  template <typename T>
  T& AnyOf(std::vector<T>& list) {
    return list[random_.Below(list.size())];
  }
  // Between a third and three times.
  double Factor() {
    return scenario::Exp(scenario::Log(3) * (2 * random_.Uniform() - 1));
  }
  void Times(Duration& time) { time = FromSeconds(ToSeconds(time) * Factor()); }
  void Times(Span& span) {
    Times(span.mean);
    Times(span.fast);
    Times(span.slow);
  }
  void Times(int32_t& count, int32_t least) {
    count = std::max(least, static_cast<int32_t>(count * Factor() + .5));
  }

  World& world_;
  Scenario& s_;
  scenario::Random& random_;
};

}  // namespace

World Minimise(const World& world, double least, const LossOf& loss_of) {
  World best = world;
  bool simpler = true;
  // Each round halves lengths, so that there is an end.
  for (int round = 0; simpler && round < 6; ++round) {
    simpler = false;
    const size_t count = Steps(best).size();
    for (size_t i = 0; i < count; ++i) {
      // What is there to be changed changes as it goes.
      const std::vector<Step> steps = Steps(best);
      if (i >= steps.size()) break;
      World candidate = best;
      steps[i](candidate);
      if (!FinishChanged(candidate) ||
          (candidate.text == best.text &&
           candidate.guard_workers == best.guard_workers &&
           candidate.told_workers == best.told_workers)) {
        continue;
      }
      if (loss_of(candidate) < least) continue;
      best = std::move(candidate);
      simpler = true;
    }
  }
  return best;
}

World Mutate(const World& world, scenario::Random& random) {
  World changed = world;
  Mutator mutator(changed, random);
  for (uint64_t i = 0, times = 1 + random.Below(3); i < times; ++i) {
    mutator.Change();
  }
  return FinishChanged(changed) ? changed : world;
}

}  // namespace weir::hunt
