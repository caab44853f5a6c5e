// One scenario of the page: its table and its charts.

#ifndef WEIR_SIM_REPORT_STUDY_H_
#define WEIR_SIM_REPORT_STUDY_H_

#include <map>
#include <string>
#include <vector>

#include "chart.h"
#include "weir/sim/html_report.h"

namespace weir::sim_report {

// Check box and style of every algorithm of the page, by its name.
class Looks {
 public:
  explicit Looks(const Page& page);
  // As `study` draws it at first.
  std::vector<Look> Of(const Study& study) const;
  // The style of an algorithm; for names the page does not have the plain one.
  size_t StyleOf(const std::string& name) const;
  size_t count() const { return by_name_.size(); }

 private:
  std::vector<std::string> wanted_;
  std::map<std::string, Look> by_name_;
};

// Folded unless it is the only one; `id` is where links lead to.
std::string StudySection(const Study& study, const Looks& looks,
                         const std::string& id, bool only);

// "weir does 99.4 % of the ideal's work, p99 62 ms; ..."
std::string Verdict(const Study& study);

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_STUDY_H_
