// A game server in virtual time: some access servers send messages over a link
// each to one main loop.  A link is one queue, whichever of the buffers of
// peers and kernels it lies in; what decides is the core's.

#ifndef WEIR_EXAMPLES_GAME_WORLD_H_
#define WEIR_EXAMPLES_GAME_WORLD_H_

#include <cstddef>
#include <cstdint>

#include "weir/stale/slice_dropper.h"
#include "weir/time.h"

namespace weir::game {

enum class Arm {
  kNone,        // Executes everything.
  kLoopTime,    // Overloaded when loops take long; a slice is old when its
                // stamp, compared with the server's clock, says so.
  kDynamic,     // CapacityMeter and SliceDropper.
  kDisconnect,  // Found as in kDynamic; a late link is closed, which empties
                // it.
};

enum class Clocks {
  kAgree,
  kOffset,   // +-9 s.
  kStep,     // Set by +-1 h in the midst of the overload.
  kDrift,    // +-100 ppm, after two hours of calm.
  kRestart,  // A peer restarts in the midst of the overload.
};

struct Case {
  Arm arm = Arm::kDynamic;
  Clocks clocks = Clocks::kAgree;
  double load = 2;  // Offered over capacity while overloaded.
  uint64_t seed = 1;
  int links = 4;
  bool even = false;  // Messages come evenly, not at random.
  double phase = 0;   // Of the first Hello, in intervals.
  Duration cost = std::chrono::milliseconds(1);     // Of a message.
  Duration discard = std::chrono::microseconds(1);  // Of one that is dropped.
  Duration lifetime = std::chrono::seconds(2);      // After that it is late.
  Duration hello = std::chrono::seconds(1);
  Duration tick = std::chrono::milliseconds(100);
  Duration threshold = std::chrono::seconds(1);
  bool stamped = false;        // Each message carries a stamp.
  bool rest_of_slice = false;  // SliceDropper::Config::lifetime is set.
  // Messages that the buffers of a link hold, the peer loses what comes beyond;
  // 0: no bound.
  size_t buffer = 0;
  // Of those, that the server knows of before it handles them.
  size_t visible = 8192;
  // Before, at a load of .5; overloaded; after, at .5 again.
  Duration before = std::chrono::seconds(30);
  Duration overload = std::chrono::seconds(120);
  Duration after = std::chrono::seconds(300);
};

// Ratios of the phase of overload.
struct Outcome {
  double valid_ratio = 0;       // Executed in time over what could have been.
  double settled_ratio = 0;     // The same, of the second half.
  double worst_link_ratio = 0;  // The same of one link, over its fair share.
  double late_ratio = 0;        // Of what was executed.
  double dropped_ratio = 0;     // Of what arrived; lost with a link included.
  double detect_s = -1;         // Until overloaded; -1: never.
  // From the end of the overload until the server is calm and nothing is late
  // or dropped any more; -1: not within `after`.
  double recover_s = -1;
};

Outcome Simulate(const Case& setup);

}  // namespace weir::game

#endif  // WEIR_EXAMPLES_GAME_WORLD_H_
