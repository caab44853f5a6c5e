// All scenarios at a glance.

#ifndef WEIR_SIM_REPORT_OVERVIEW_H_
#define WEIR_SIM_REPORT_OVERVIEW_H_

#include <string>

#include "study.h"
#include "weir/sim/html_report.h"

namespace weir::sim_report {

// The id of the section of study `i`.
std::string StudyId(size_t i);

// What the page found, in one or two sentences.
std::string Lead(const Page& page);

// A row for each scenario; then a row for each algorithm with all its
// scenarios, for each of the measures that count most.  For pages of several
// studies.
std::string Overview(const Page& page, const Looks& looks);

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_OVERVIEW_H_
