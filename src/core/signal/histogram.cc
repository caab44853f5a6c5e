#include "weir/signal/histogram.h"

namespace weir {

Duration Histogram::Quantile(const Counts& counts, double share) {
  uint64_t total = 0;
  for (const uint64_t count : counts) total += count;
  if (total == 0) return Duration(0);
  const auto rank =
      static_cast<uint64_t>(share * static_cast<double>(total - 1));
  uint64_t below = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    below += counts[i];
    if (below > rank) return Value(i);
  }
  return Value(kSteps - 1);
}

}  // namespace weir
