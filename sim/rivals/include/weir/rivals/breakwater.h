// Breakwater: a pool of credits sized by queueing delay.
//
// Once per round trip, with d the largest queueing delay since the last time
// and t its target:
//
//   d < t:  credits += clients * .001      (the fraction is carried)
//   else:   credits *= max(1 - .02 * (d - t) / t, .5)
//
// between the number of cores and 64 per client.  A request that would start
// after 2 t of waiting is refused.
//
// Source: [CHO2020] section 4 and its code [BREAKWATER-CODE], whose targets
// are 45, 80 and 500 us for services of 1, 10 and 100 us: `target` must be
// scaled to the service.
// Deviations, all on the caller's side, which is left out: credits are not
// handed to clients one by one, and neither their demand nor overcommitment is
// modelled.  A request spends one credit of the pool while it is in the
// server; without a free one it is refused, as if its client had held none.
// `clients` is given, not counted.

#ifndef WEIR_RIVALS_BREAKWATER_H_
#define WEIR_RIVALS_BREAKWATER_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class Breakwater final : public Gate, public Taker {
 public:
  struct Config {
    Duration target = std::chrono::milliseconds(50);
    Duration round_trip = std::chrono::milliseconds(1);
    int32_t cores = 16;
    int32_t clients = 1000;
    double additive = 0.001;
    double multiplicative = 0.02;
    int32_t most_per_client = 64;
  };

  explicit Breakwater(const Config& config)
      : config_(config), credits_(config.cores) {}

  bool Admit(const Arrival& arrival) override;
  bool Take(const Start& start) override;

  double credits() const { return credits_; }

 private:
  void See(Instant now, Duration delay);

  Config config_;
  double credits_;
  Duration worst_delay_{};
  std::optional<Instant> update_at_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_BREAKWATER_H_
