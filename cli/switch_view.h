// How the state of a resource's switch is said.

#ifndef WEIR_CLI_SWITCH_VIEW_H_
#define WEIR_CLI_SWITCH_VIEW_H_

#include <string>

#include "weir/snapshot.h"
#include "weir/time.h"

namespace weir::cli {

// "open"; "paused by the policy"; "paused by hand, 9m40s left"; "degraded to 1
// by hand"; "degraded to 2 by overload"; with a note when nothing obeys it.
std::string SwitchState(const Snapshot::Resource& resource, Instant now);

// The same for a narrow column: "", "paused", "paused 10m", "degrade 1".
std::string SwitchMark(const Snapshot::Resource& resource, Instant now);

std::string SwitchesTable(const Snapshot& seen, Instant now);
std::string SwitchesJson(const Snapshot& seen, Instant now);

// In whole seconds, rounded up: "45s", "9m40s", "2h5m".
std::string FormatLeft(Duration left);

}  // namespace weir::cli

#endif  // WEIR_CLI_SWITCH_VIEW_H_
