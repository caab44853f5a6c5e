#include "weir/scenario/capacity.h"

#include <algorithm>
#include <vector>

namespace weir::scenario {
namespace {

// How much of a change that starts at `change.at` is in force at `at`.
double Progress(const Change& change, Duration at) {
  if (at < change.at) return 0;
  if (at >= change.at + change.over) return 1;
  return ToSeconds(at - change.at) / ToSeconds(change.over);
}

bool Concerns(const std::vector<uint16_t>& replicas, size_t replica) {
  return replicas.empty() ||
         std::find(replicas.begin(), replicas.end(), replica) != replicas.end();
}

double Towards(double from, double to, double progress) {
  return from + (to - from) * progress;
}

// Share of the time in which `replica` does not stand still.
double AwakeRatio(const Tier& tier, size_t replica) {
  double awake = 1;
  for (const Pause& pause : tier.pauses) {
    if (pause.every > Duration{} && Concerns(pause.replicas, replica)) {
      awake *= 1 - ToSeconds(pause.length) / ToSeconds(pause.every);
    }
  }
  return std::max(awake, 0.);
}

// Requests that reach each tier per request that enters the service.  Calls
// only lead to later tiers.
std::vector<double> Visits(const Scenario& scenario) {
  std::vector<double> visits(scenario.tiers.size(), 0);
  visits[0] = 1;
  for (size_t i = 0; i < scenario.tiers.size(); ++i) {
    for (const Call& call : scenario.tiers[i].calls) {
      visits[call.tier] += visits[i] * call.times;
    }
  }
  return visits;
}

double TakesStage(const Scenario& scenario, const Stage& stage) {
  return stage.ratio * (stage.route ? scenario.routes[*stage.route].share : 1);
}

double TierCapacity(const Scenario& scenario, const Tier& tier, Duration at) {
  double cpu_seconds = 0;
  double capacity = kUnlimited;
  double up = 0;
  double speed = 0;  // Workers of all replicas, by their speed.
  for (size_t r = 0; r < static_cast<size_t>(tier.replicas); ++r) {
    const ReplicaState state = ReplicaAt(tier, r, at);
    if (state.workers > 0) up += AwakeRatio(tier, r);
    speed += state.workers * state.speed * AwakeRatio(tier, r);
  }
  for (size_t i = 0; i < tier.stages.size(); ++i) {
    const Stage& stage = tier.stages[i];
    const double seconds =
        TakesStage(scenario, stage) * MeanSeconds(SpanAt(tier, i, at));
    if (stage.kind == Stage::Kind::kCpu) {
      cpu_seconds += seconds;
    } else if (stage.kind != Stage::Kind::kIo && seconds > 0) {
      const int32_t size = stage.kind == Stage::Kind::kPool ? stage.size : 1;
      capacity = std::min(capacity, up * size / seconds);
    }
  }
  if (cpu_seconds > 0) capacity = std::min(capacity, speed / cpu_seconds);
  return up > 0 ? capacity : 0;
}

}  // namespace

double MeanSeconds(const Span& span) {
  if (span.distribution != Span::Distribution::kBimodal) {
    return ToSeconds(span.mean);
  }
  return Towards(ToSeconds(span.fast), ToSeconds(span.slow), span.slow_ratio);
}

Span SpanAt(const Tier& tier, size_t stage, Duration at) {
  Span span = tier.stages[stage].time;
  for (const Change& change : tier.changes) {
    if (change.stage != stage || at < change.at) continue;
    const double progress = Progress(change, at);
    if (change.time) {
      span.mean = FromSeconds(
          Towards(ToSeconds(span.mean), ToSeconds(*change.time), progress));
    }
    if (change.slow_ratio) {
      span.slow_ratio = Towards(span.slow_ratio, *change.slow_ratio, progress);
    }
  }
  return span;
}

ReplicaState ReplicaAt(const Tier& tier, size_t replica, Duration at) {
  ReplicaState state{.workers = tier.workers};
  bool up = true;
  for (const Change& change : tier.changes) {
    if (at < change.at || !Concerns(change.replicas, replica)) continue;
    if (change.workers) state.workers = *change.workers;
    if (change.up) up = *change.up;
    if (change.speed) {
      state.speed = Towards(state.speed, *change.speed, Progress(change, at));
    }
  }
  if (!up) state.workers = 0;
  return state;
}

double CapacityAt(const Scenario& scenario, Duration at) {
  const std::vector<double> visits = Visits(scenario);
  double capacity = kUnlimited;
  for (size_t i = 0; i < scenario.tiers.size(); ++i) {
    if (visits[i] == 0) continue;
    capacity = std::min(
        capacity, TierCapacity(scenario, scenario.tiers[i], at) / visits[i]);
  }
  return capacity;
}

double LoadAt(const Phase& phase, Duration into) {
  switch (phase.shape) {
    case Phase::Shape::kConstant:
      return phase.load;
    case Phase::Shape::kRamp:
      return Towards(phase.load, phase.to,
                     ToSeconds(into) / ToSeconds(phase.duration));
    case Phase::Shape::kSquare:
      return into % phase.every < phase.every - phase.peak_for ? phase.load
                                                               : phase.to;
    case Phase::Shape::kBursts:
      return Towards(phase.load, phase.to,
                     ToSeconds(phase.peak_for) / ToSeconds(phase.every));
  }
  return phase.load;
}

double OfferedAt(const Scenario& scenario, Duration at) {
  if (at < Duration{} || at >= scenario.length()) return 0;
  const double nominal = CapacityAt(scenario, Duration{});
  double rate = 0;
  Duration start{};
  for (const Phase& phase : scenario.phases) {
    if (at < start + phase.duration) {
      const double unit = phase.of_current ? CapacityAt(scenario, at) : nominal;
      rate = unit * LoadAt(phase, at - start);
      break;
    }
    start += phase.duration;
  }
  for (const Hog& hog : scenario.clients.hogs) {
    const bool on = at >= hog.from && (!hog.until || at < *hog.until);
    if (on) rate += nominal * hog.load;
  }
  return rate;
}

}  // namespace weir::scenario
