// The demonstration of `weir up`: the same storm on the port with weir and on
// the one without, side by side.

#ifndef WEIR_CLI_DEMO_H_
#define WEIR_CLI_DEMO_H_

#include <cstdint>

#include "weir/scenario/scenario.h"

namespace weir::cli {

struct DemoOptions {
  uint16_t guarded_port = 0;
  uint16_t unguarded_port = 0;  // 0: it is left out.
  uint64_t seed = 0;
  bool json = false;  // The last line is one JSON object.
};

// Takes the scenario's length for each port.  Returns an ExitStatus: kFine when
// both could be stormed and the one with weir keeps the scenario's bounds.
int PlayDemo(const scenario::Scenario& scenario, const DemoOptions& options);

}  // namespace weir::cli

#endif  // WEIR_CLI_DEMO_H_
