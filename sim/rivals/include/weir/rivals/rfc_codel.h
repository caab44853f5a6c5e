// RfcCodel: CoDel as published, a request in the place of a packet.
//
// Once the queue delay has been at or above the target (5 ms) for an interval
// (100 ms), it refuses one request, and then another each
// interval / sqrt(count) until a delay falls below the target.  The rate of
// refusals creeps up: it was made for senders that slow down when one packet
// is lost.
//
// Source: [RFC8289] section 5.5.  Deviations: the guard of one maximum packet
// is "nothing else waits"; the next request after a refused one comes as the
// next call, so a drop time is set before it is known whether that one is
// above the target.

#ifndef WEIR_RIVALS_RFC_CODEL_H_
#define WEIR_RIVALS_RFC_CODEL_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class RfcCodel final : public Taker {
 public:
  struct Config {
    Duration interval = std::chrono::milliseconds(100);
    Duration target = std::chrono::milliseconds(5);
  };

  explicit RfcCodel(const Config& config) : config_(config) {}

  bool Take(const Start& start) override;

 private:
  // Whether the delay has been above the target for an interval.
  bool MayDrop(const Start& start);
  Instant NextDrop(Instant from) const;

  Config config_;
  std::optional<Instant> above_until_;  // When above becomes "for too long".
  Instant drop_at_{};
  int64_t count_ = 0;       // Refused since this dropping state began.
  int64_t last_count_ = 0;  // count_ when the former one began.
  bool dropping_ = false;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_RFC_CODEL_H_
