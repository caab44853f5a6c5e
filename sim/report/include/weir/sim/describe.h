// From the results of a study to what a page says of it.

#ifndef WEIR_SIM_DESCRIBE_H_
#define WEIR_SIM_DESCRIBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "weir/scenario/scenario.h"
#include "weir/sim/html_report.h"
#include "weir/sim/outcome.h"

namespace weir::sim_report {

// `results` as sim::RunStudy() gives them, [algorithm][seed], with a series
// for the first seed; `names` are of its algorithms.  Neither weir nor the
// mutants that tests need are rivals.
Study Describe(const scenario::Scenario& scenario,
               const std::vector<std::string>& names,
               const std::vector<uint64_t>& seeds,
               const std::vector<std::vector<sim::Outcomes>>& results,
               std::string command);

}  // namespace weir::sim_report

#endif  // WEIR_SIM_DESCRIBE_H_
