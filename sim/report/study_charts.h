// The charts of a study.

#ifndef WEIR_SIM_REPORT_STUDY_CHARTS_H_
#define WEIR_SIM_REPORT_STUDY_CHARTS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "chart.h"
#include "weir/sim/html_report.h"

namespace weir::sim_report {

// Indices of the algorithms as charts and check boxes have them: those that
// are drawn, then the others.
std::vector<size_t> InOrder(const std::vector<Look>& looks);

// Each function but the last returns figures; `looks` has one for each
// algorithm.  Both arguments must outlive this.
class StudyCharts {
 public:
  StudyCharts(const Study& study, const std::vector<Look>& looks);

  // Whether there is nothing to draw.
  bool empty() const { return bins_ == 0; }

  std::string Offered() const;
  std::string Goodput() const;
  std::string Latency() const;
  std::string Limit() const;
  std::string Waiting() const;
  std::string Sheds() const;
  // A paragraph on those without a figure of sheds.
  std::string WithoutSheds() const;

 private:
  Chart Empty(std::string title, std::string unit) const;
  void AddLines(
      Chart& chart, Keep keep, size_t most,
      const std::function<std::vector<double>(const Series&)>& values) const;
  StackedChart ShedsOf(size_t algorithm) const;
  std::string ClassName(size_t cls) const;
  size_t InkOf(size_t cls) const;

  const Study& study_;
  const std::vector<Look>& looks_;
  size_t bins_;
  double seconds_ = 0;  // How much time the charts show.
  std::vector<Mark> phases_;
};

}  // namespace weir::sim_report

#endif  // WEIR_SIM_REPORT_STUDY_CHARTS_H_
