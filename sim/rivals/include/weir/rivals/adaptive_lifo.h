// AdaptiveLifo: Facebook's controlled delay with adaptive LIFO.
//
// When the queue has not been empty for N (100 ms), a request may wait only M
// (5 ms), else N.  While a queue stands the newest goes first, so that those
// who still have a caller are served.
//
// Source: [MAURER2015].  Deviations: the bound is applied with the state of
// the queue at the time a request would start, not when it was queued; "a
// queue is forming" is "not empty for M" (chosen: the article gives no rule).

#ifndef WEIR_RIVALS_ADAPTIVE_LIFO_H_
#define WEIR_RIVALS_ADAPTIVE_LIFO_H_

#include <chrono>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class AdaptiveLifo final : public Gate, public Taker, public Sorter {
 public:
  struct Config {
    Duration patience = std::chrono::milliseconds(100);  // N.
    Duration target = std::chrono::milliseconds(5);      // M.
  };

  explicit AdaptiveLifo(const Config& config) : config_(config) {}

  // Refuses nothing; sees when the queue was last empty.
  bool Admit(const Arrival& arrival) override;
  bool Take(const Start& start) override;
  Order QueueOrder(Instant now) override;

 private:
  Config config_;
  Instant last_empty_{};
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_ADAPTIVE_LIFO_H_
