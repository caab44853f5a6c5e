// What every counter and gauge means, as text made from counters.def.

#ifndef WEIR_CLI_COUNTERS_H_
#define WEIR_CLI_COUNTERS_H_

#include <string>

namespace weir::cli {

std::string CountersText();      // For a terminal.
std::string CountersMarkdown();  // For docs/operating.md.

}  // namespace weir::cli

#endif  // WEIR_CLI_COUNTERS_H_
