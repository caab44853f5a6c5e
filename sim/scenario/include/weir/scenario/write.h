// A Scenario as the text of a scenario file, which ParseScenario() reads.

#ifndef WEIR_SCENARIO_WRITE_H_
#define WEIR_SCENARIO_WRITE_H_

#include <string>

#include "weir/scenario/scenario.h"

namespace weir::scenario {

// Everything but `[client_guard]`: the scenario's callers must have the
// default rules.  Numbers are written so that they read back to the same
// value, except that the shares of a phase's classes go through `loads` and
// may differ in their last bit.  What has its default value is left out.
std::string ToToml(const Scenario& scenario);

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_WRITE_H_
