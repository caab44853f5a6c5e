// Deadlines: absolute inside a process, relative on the wire.
//
// A clock of one machine means nothing on another, so what travels is the time
// that is left; each hop makes an instant of its own timeline of it.  What is
// left shrinks at each hop by the time spent and by a margin for the network,
// and never grows: a service cannot give its own calls more time than its
// caller gave it.
//
// Source: [SRE2016] chapter 22, deadline propagation.

#ifndef WEIR_CLIENT_DEADLINE_H_
#define WEIR_CLIENT_DEADLINE_H_

#include <chrono>
#include <optional>

#include "weir/result.h"
#include "weir/time.h"

namespace weir {

struct DeadlineRules {
  // Kept back for the way there and back.  Chosen: two milliseconds, more than
  // a round trip within a data centre takes; raise it between sites.
  Duration margin = std::chrono::milliseconds(2);  // [0, 1 min].
  // Longest budget given to a call.
  Duration ceiling = std::chrono::seconds(60);  // [1 ms, 1 h].

  // What is left for a call made at `now` on behalf of something that must be
  // answered by `deadline` (kNever: the ceiling), or nothing when that is less
  // than a millisecond, the least that every wire format can say.
  std::optional<Duration> Budget(Instant deadline, Instant now) const;

  // What a budget that was received means here.  At most the ceiling.
  Instant Receive(Duration budget, Instant now) const;

  std::optional<Error> Check() const;
  bool operator==(const DeadlineRules&) const = default;
};

// Whether a stage that takes about `needed` can still end in time.  Ask before
// each stage of some length.
constexpr bool CanFinish(Instant deadline, Instant now, Duration needed = {}) {
  return deadline == kNever || (now < deadline && needed <= deadline - now);
}

}  // namespace weir

#endif  // WEIR_CLIENT_DEADLINE_H_
