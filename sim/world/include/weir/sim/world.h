// Plays a scenario in virtual time under one algorithm.

#ifndef WEIR_SIM_WORLD_H_
#define WEIR_SIM_WORLD_H_

#include <cstdint>

#include "weir/decision.h"
#include "weir/scenario/scenario.h"
#include "weir/sim/gate.h"
#include "weir/sim/outcome.h"
#include "weir/time.h"

namespace weir::sim {

// One decision of one gate, as a log keeps it.
struct DecisionRecord {
  int64_t at_ns = 0;
  uint64_t number = 0;  // Of the request; attempts in the upper 16 bits.
  uint16_t tier = 0;
  uint16_t replica = 0;
  Verdict verdict = Verdict::kAdmit;
  Reason reason = Reason::kRoom;
};

// What runs under one seed have in common, see script.h.
class Script;

class DecisionLog {
 public:
  virtual void Add(const DecisionRecord& record) = 0;

 protected:
  ~DecisionLog() = default;
};

struct RunOptions {
  uint64_t seed = 1;
  DecisionLog* log = nullptr;  // Null: decisions are not kept.
  // Width of a bin of the time series; zero: no series.
  Duration bin{};
  // Null: none.  An empty one is filled, a complete one is read, which must be
  // of the same scenario and seed.
  Script* script = nullptr;
};

// Runs the whole scenario, and on until every caller has its answer or has
// given up.  Equal arguments give equal results, to the bit.  Memory follows
// what is in the world at once, not how long it lasts.
Outcomes Simulate(const scenario::Scenario& scenario,
                  const Algorithm& algorithm, const RunOptions& options);

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_H_
