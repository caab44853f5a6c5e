#include "weir/scenario/ideal.h"

#include <algorithm>
#include <limits>

namespace weir::scenario {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

}  // namespace

Ideal ComputeIdeal(const std::vector<double>& offered,
                   const std::vector<double>& capacity, Duration deadline) {
  const size_t steps = offered.size();
  const double patience = ToSeconds(deadline) / ToSeconds(kIdealStep);
  Ideal ideal{std::vector<double>(steps), std::vector<bool>(steps)};

  double backlog = 0;
  size_t busy_since = 0;
  size_t last_too_much = kNone;
  for (size_t i = 0;; ++i) {
    if (i == steps || (backlog == 0 && last_too_much != kNone)) {
      // A busy period is over.  If it overflowed, what waited at the last
      // overflow is forgotten and the rest of the period is played again.
      if (last_too_much == kNone) break;
      for (size_t k = busy_since; k <= last_too_much; ++k) {
        ideal.overload[k] = true;
      }
      i = last_too_much + 1;
      last_too_much = kNone;
      backlog = 0;
      if (i == steps) break;
    }
    if (backlog == 0) busy_since = i;
    backlog += offered[i];
    ideal.served[i] = std::min(backlog, capacity[i]);
    backlog -= ideal.served[i];
    const double room = capacity[i] * patience;
    if (backlog > room) {
      backlog = room;
      last_too_much = i;
    }
  }
  return ideal;
}

}  // namespace weir::scenario
