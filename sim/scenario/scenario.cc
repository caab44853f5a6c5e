#include "weir/scenario/scenario.h"

#include <algorithm>

namespace weir::scenario {
namespace {

void Scale(Duration& d, double factor) {
  d = Duration(static_cast<int64_t>(static_cast<double>(d.count()) * factor));
}

}  // namespace

Duration Scenario::length() const { return PhaseStart(phases.size()); }

Duration Scenario::PhaseStart(size_t i) const {
  Duration start{};
  for (size_t k = 0; k < i; ++k) start += phases[k].duration;
  return start;
}

int32_t Scenario::ClientCount() const {
  int32_t count = clients.count;
  for (const Hog& hog : clients.hogs) count += hog.count;
  for (const ClosedClients& closed : clients.closed) count += closed.count;
  return count;
}

void Scenario::Truncate(Duration end) {
  Duration begun{};
  for (size_t i = 0; i < phases.size(); ++i) {
    phases[i].duration = std::min(phases[i].duration, end - begun);
    begun += phases[i].duration;
    if (begun >= end) phases.resize(i + 1);
  }
}

void Scenario::Stretch(double factor) {
  for (Phase& phase : phases) {
    Scale(phase.duration, factor);
    Scale(phase.every, factor);
    Scale(phase.peak_for, factor);
  }
  for (Tier& tier : tiers) {
    for (Change& change : tier.changes) {
      Scale(change.at, factor);
      Scale(change.over, factor);
    }
    for (Pause& pause : tier.pauses) {
      Scale(pause.first, factor);
      Scale(pause.every, factor);
    }
  }
  for (Tier& tier : tiers) {
    for (Failure& failure : tier.failures) {
      Scale(failure.from, factor);
      if (failure.until) Scale(*failure.until, factor);
    }
  }
  for (Hog& hog : clients.hogs) {
    Scale(hog.from, factor);
    if (hog.until) Scale(*hog.until, factor);
  }
  for (ClosedClients& closed : clients.closed) {
    Scale(closed.from, factor);
    if (closed.until) Scale(*closed.until, factor);
  }
}

}  // namespace weir::scenario
