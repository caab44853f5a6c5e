// Scenario files: TOML to a checked Scenario.

#ifndef WEIR_SCENARIO_READ_H_
#define WEIR_SCENARIO_READ_H_

#include <string>
#include <vector>

#include "weir/config/complaint.h"
#include "weir/config/document.h"
#include "weir/scenario/scenario.h"

namespace weir::scenario {

// Every key is checked, and all complaints come at once.  `name` is the text's
// name in messages.
config::Checked<Scenario> ParseScenario(std::string text, std::string name);
config::Checked<Scenario> LoadScenario(const std::string& path);

// Every key of the format, for docs/scenarios.md.
std::vector<config::Row> ScenarioRows();

}  // namespace weir::scenario

#endif  // WEIR_SCENARIO_READ_H_
