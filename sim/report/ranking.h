// Ranks of the algorithms, as tables of the overview.

#ifndef WEIR_SIM_REPORT_RANKING_H_
#define WEIR_SIM_REPORT_RANKING_H_

#include <string>

#include "weir/sim/html_report.h"

namespace weir::sim_report {

// How the first algorithm stands in each scenario, whether its goals are met,
// and how all stand over all scenarios.
std::string Ranking(const Page& page);

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_RANKING_H_
