// The scenarios of the evaluation matrix, as they stand in sim/scenarios, so
// that the program needs no files to play them.

#ifndef WEIR_CLI_MATRIX_SCENARIOS_H_
#define WEIR_CLI_MATRIX_SCENARIOS_H_

#include <span>
#include <string_view>

namespace weir::cli {

struct ScenarioText {
  std::string_view name;  // Of its file, without a folder.
  std::string_view text;
};

// In the order of their names.
std::span<const ScenarioText> MatrixScenarios();

}  // namespace weir::cli

#endif  // WEIR_CLI_MATRIX_SCENARIOS_H_
