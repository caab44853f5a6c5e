// FollyCodel: CoDel as folly's executors have it, for requests.
//
// When the least queue delay of an interval (100 ms) was above the target
// (5 ms), the next interval is overloaded, and in it whatever waited longer
// than twice the target is refused.  The first request of each interval only
// starts the new minimum and always passes.
//
// Source: [FOLLY] executors/Codel.cpp, its defaults.  Deviations: none.

#ifndef WEIR_RIVALS_FOLLY_CODEL_H_
#define WEIR_RIVALS_FOLLY_CODEL_H_

#include <chrono>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class FollyCodel final : public Taker {
 public:
  struct Config {
    Duration interval = std::chrono::milliseconds(100);
    Duration target = std::chrono::milliseconds(5);
  };

  explicit FollyCodel(const Config& config) : config_(config) {}

  bool Take(const Start& start) override;

 private:
  Config config_;
  Instant interval_ends_{};
  Duration least_delay_{};
  bool overloaded_ = false;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_FOLLY_CODEL_H_
