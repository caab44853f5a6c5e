// The operator's hand on a live service: its switches and drills, set from
// another process.
//
// A switch lies in two places.  In the region, where all workers read it at
// their next decision; and in a small file beside the segment,
// /dev/shm/weir.SERVICE.switches, from which a region that is made anew takes
// it: after an upgrade to another layout, or `weir segment remove`.  The
// segment itself outlives restarts of workers and of the whole service.
//
// Why there: both are of one kind (the same user, mode 0600, the same machine
// or container) and go together at a reboot, so that the instants in the file,
// which count from boot, hold for as long as the file does.  The policy's
// folder would survive a reboot, but is often read-only (a ConfigMap) and not
// known to the region; and what is to survive a reboot belongs into the policy
// itself, which is reviewed: `paused = true`.
//
// The file is replaced by a rename, so there is the old one or the new one.
// It must be of the segment's user, or root's.
// One that is neither (somebody wrote into it) changes nothing: what the
// region holds stays, and a region made anew starts without switches and says
// so.  Those who change or load it take turns by a lock on the segment, which
// the kernel gives back when they die.

#ifndef WEIR_SHM_SWITCH_BOARD_H_
#define WEIR_SHM_SWITCH_BOARD_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/degrade/drill.h"
#include "weir/degrade/switch.h"
#include "weir/region.h"
#include "weir/result.h"
#include "weir/shm/segment.h"
#include "weir/time.h"

namespace weir::shm {

class SwitchBoard {
 public:
  // Of a segment that exists, for its user and for root.
  static Result<SwitchBoard> Open(std::string_view service);

  const Region& region() const;

  // Sets the switch of each resource in `rows` (of the region), for all
  // workers from their next decision on: all or, with an error, none.
  std::optional<Error> Set(const std::vector<uint16_t>& rows, const Switch& set,
                           Instant now);

  // Begins a drill, unless one runs or the service is overloaded.
  std::optional<Error> Begin(const Drill& drill, Instant now);
  // Ends this drill, if it still runs.  True when it did.
  bool End(const Drill& drill);

 private:
  SwitchBoard(Mapping mapping, std::string service)
      : mapping_(std::move(mapping)), service_(std::move(service)) {}
  Region& shared() const;

  Mapping mapping_;
  std::string service_;  // As asked for: the segment may say anything.
};

// "/dev/shm/weir.SERVICE.switches".
std::string SwitchesPath(std::string_view service);

}  // namespace weir::shm

#endif  // WEIR_SHM_SWITCH_BOARD_H_
