// Makes an algorithm of a rival.

#ifndef WEIR_SIM_WORLD_RIVAL_GATE_H_
#define WEIR_SIM_WORLD_RIVAL_GATE_H_

#include "weir/rivals/registry.h"
#include "weir/sim/gate.h"

namespace weir::sim {

// `entry` must outlive it, as those of the registry do.
Algorithm RivalAlgorithm(const rivals::Entry& entry, bool queued);

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_RIVAL_GATE_H_
