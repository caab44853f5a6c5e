// EnvoyAdmission: Envoy's admission control, a server side throttle on the
// success rate of the last half minute.
//
//   p = ((n - successes / threshold) / (n + 1)) ^ (1 / aggression)
//
// capped at `ceiling`; refuses when 10^4 * p > draw mod 10^4.  Refused
// requests are not counted.  Below `least_rps` it never refuses.
//
// Source: [ENVOY-ADMISSION], the later formula with a success rate threshold;
// its defaults.  Failures are errors and timeouts; cancelled and ignored
// requests are not counted.  Deviations: none known.

#ifndef WEIR_RIVALS_ENVOY_ADMISSION_H_
#define WEIR_RIVALS_ENVOY_ADMISSION_H_

#include <chrono>
#include <cstdint>
#include <deque>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class EnvoyAdmission final : public Gate, public Learner {
 public:
  struct Config {
    double threshold = 0.95;  // Success rate below which it starts.  (0, 1].
    double aggression = 1.0;  // >= 1.
    double ceiling = 0.8;     // Largest p.
    int64_t least_rps = 0;
    Duration window = std::chrono::seconds(30);
  };
  struct Counts {
    int64_t requests = 0;
    int64_t successes = 0;
  };

  explicit EnvoyAdmission(const Config& config) : config_(config) {}

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;

  static double RefusalRatio(const Config& config, const Counts& counts);

  Counts counts(Instant now);
  // Requests per second over the whole window, rounded down.
  int64_t average_rps(Instant now);

 private:
  struct Slice {
    Instant from;
    Counts counts;
  };
  void Forget(Instant now);

  Config config_;
  std::deque<Slice> slices_;  // Oldest first; each covers a second.
  Counts total_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_ENVOY_ADMISSION_H_
