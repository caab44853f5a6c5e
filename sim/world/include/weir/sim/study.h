// Many runs of one scenario: algorithms by seeds.

#ifndef WEIR_SIM_STUDY_H_
#define WEIR_SIM_STUDY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/scenario/scenario.h"
#include "weir/sim/gate.h"
#include "weir/sim/outcome.h"
#include "weir/sim/world.h"
#include "weir/time.h"

namespace weir::sim {

struct StudyOptions {
  std::vector<uint64_t> seeds = {1};
  Duration bin{};              // Of the series of the first seed; zero: none.
  DecisionLog* log = nullptr;  // Of the first algorithm under the first seed.
  int threads = 1;
  // Called after each run, from several threads at once; may be empty.
  std::function<void()> on_run{};
};

// Runs all of them; [algorithm][seed].  The results do not depend on the
// number of threads.
std::vector<std::vector<Outcomes>> RunStudy(
    const scenario::Scenario& scenario,
    const std::vector<Algorithm>& algorithms, const StudyOptions& options);

// A figure over the seeds.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};
// Nothing when it applies to no run.  The names are those of [expect], and
// `fairness`, `inversions_per_1000`, `unsteadiness`, `wasted_ratio`.
std::optional<Spread> SpreadOf(const std::vector<Outcomes>& runs,
                               std::string_view metric);
std::optional<double> MetricOf(const Outcomes& run, std::string_view metric);

}  // namespace weir::sim

#endif  // WEIR_SIM_STUDY_H_
