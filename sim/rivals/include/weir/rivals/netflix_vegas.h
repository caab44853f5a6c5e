// NetflixVegas: TCP Vegas for inflight, fed each request.
//
//   queue = ceil(limit * (1 - base / latency)), base = least latency seen
//   dropped: limit - s;  queue <= s: limit + 6s;  queue < 3s: limit + s;
//   queue > 6s: limit - s;  else hold;  s = max(1, floor(log10(limit)))
//
// It holds while fewer than half of the limit were running.  Every
// 30 * limit * U(.5, 1) samples the next latency becomes the base, whatever it
// is: probing under load stores a loaded latency, which is how it drifts.
//
// Source: [NETFLIX-CL] VegasLimit, its defaults.  As there, a sample that sets
// the base changes nothing else, and the limit is clamped before smoothing.
// Deviations: the jitter comes from a seed; `decrease_ratio` stands for the
// decrease functions that its tests plug in.

#ifndef WEIR_RIVALS_NETFLIX_VEGAS_H_
#define WEIR_RIVALS_NETFLIX_VEGAS_H_

#include <cstdint>
#include <optional>

#include "weir/rivals/rival.h"
#include "weir/splitmix64.h"
#include "weir/time.h"

namespace weir::rivals {

class NetflixVegas final : public Limiter, public Learner {
 public:
  struct Config {
    int32_t initial = 20;
    int32_t ceiling = 1000;
    double smoothing = 1.0;
    int32_t probe_multiplier = 30;
    // When set, a decrease is limit * ratio instead of limit - s.
    std::optional<double> decrease_ratio = std::nullopt;
    uint64_t seed = 0;
  };

  explicit NetflixVegas(const Config& config);

  int32_t Limit(Instant) override { return static_cast<int32_t>(limit_); }
  void Learn(const Finish& finish) override;

 private:
  // Nothing when the limit is to hold.
  std::optional<double> Next(const Finish& finish) const;
  double Decreased() const;

  Config config_;
  SplitMix64 random_;
  double limit_;
  Duration base_{};  // Zero: none yet.
  double probe_jitter_;
  int64_t samples_since_probe_ = 0;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_NETFLIX_VEGAS_H_
