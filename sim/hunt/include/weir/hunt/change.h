// Changes of worlds: simpler ones, and others of the same kind.

#ifndef WEIR_HUNT_CHANGE_H_
#define WEIR_HUNT_CHANGE_H_

#include <functional>

#include "weir/hunt/draw.h"
#include "weir/scenario/random.h"

namespace weir::hunt {

// How much is lost in a world; the more, the worse.
using LossOf = std::function<double(const World&)>;

// Leaves out, shortens and rounds all that can be while at least `least` is
// lost.  Deterministic if `loss_of` is.  Plays some hundred worlds.
World Minimise(const World& world, double least, const LossOf& loss_of);

// A world that differs in one to three things; it may be the same world when
// what was changed fits no file.
World Mutate(const World& world, scenario::Random& random);

}  // namespace weir::hunt

#endif  // WEIR_HUNT_CHANGE_H_
