// Pie: proportional integral controller enhanced, refusing at arrival.
//
//   every 15 ms: p += alpha * (delay - target) + beta * (delay - delay before)
//
// with alpha = 1/8 and beta = 5/4 per second of delay, both divided while p is
// small; p decays by 2 % per update when nothing queues.  Nothing is refused
// in the first 150 ms of a congestion, while the delay is under half the
// target with p < .2, or while two or fewer wait.
//
// Source: [RFC8033] sections 4 and 5 with its defaults.  Deviations: the delay
// is that of the head of the queue as the simulator sees it, so no departure
// rate is estimated; without the optional derandomization.

#ifndef WEIR_RIVALS_PIE_H_
#define WEIR_RIVALS_PIE_H_

#include <chrono>
#include <optional>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class Pie final : public Gate {
 public:
  struct Config {
    Duration target = std::chrono::milliseconds(15);
    Duration update_interval = std::chrono::milliseconds(15);
    Duration burst = std::chrono::milliseconds(150);
    double alpha = 0.125;  // Per second of delay above the target.
    double beta = 1.25;    // Per second of growth of the delay.
  };

  explicit Pie(const Config& config)
      : config_(config), burst_left_(config.burst) {}

  bool Admit(const Arrival& arrival) override;

  double drop_ratio() const { return drop_ratio_; }

 private:
  void Update(Duration delay);

  Config config_;
  double drop_ratio_ = 0;
  Duration delay_before_{};
  Duration burst_left_;
  std::optional<Instant> update_at_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_PIE_H_
