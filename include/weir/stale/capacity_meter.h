// CapacityMeter computes what a server can do and what is asked of it, from
// what its loop did; nothing is configured but how long to look.
//
// Work is counted in bytes or in messages, whichever the caller adds up.  Time
// runs in units; statistics are kept over a window of units:
//
//   speed    = executed work / busy time spent executing it
//   capacity = speed * (1 - time on other work / time)          [work per s]
//   demand   = (waiting when the unit began + arrived in it) / unit
//
// Other work is all that the loop must do besides messages (timers, ticks,
// sending), not waiting for something to do.  Speed counts busy time alone, so
// that a server which is nearly idle knows its capacity.
//
// Two spans are measured, the last full unit and the window.  In calm the
// smaller capacity counts: a loss is seen within a unit, one odd unit does not
// raise it.  While overloaded the last unit counts alone: the server was busy
// all through it, and what it has gained is seen at once.
//
// Source: [WETEST], docs/algorithms/stale.md.  Differs from it in three ways
// that the page explains.  Work that was dropped is neither executed work nor
// busy time nor other work, so discarding quickly does not look like capacity.
// Demand has what is waiting and not yet handled: in a saturated loop handled
// work equals capacity by definition and would never exceed it.  And capacity
// is not the window's mean alone, which is late by the whole window.

#ifndef WEIR_STALE_CAPACITY_METER_H_
#define WEIR_STALE_CAPACITY_METER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "weir/result.h"
#include "weir/time.h"

namespace weir {

// Not thread-safe: belongs to the loop it measures.  O(1), except for the end
// of a unit, which sums up the window.
class CapacityMeter {
 public:
  static constexpr size_t kMaxUnits = 64;

  struct Config {
    // Source: docs/algorithms/stale.md, unit time and statistics time.
    Duration unit = std::chrono::seconds(5);     // >= 1 ms.
    Duration window = std::chrono::seconds(30);  // 1 to kMaxUnits whole units.
  };

  // Of the last full unit.
  struct Reading {
    double capacity = 0;       // Work per second; infinite while unknown.
    double unit_capacity = 0;  // Of the last unit alone; as above.
    double demand = 0;         // Work per second.
    int64_t waiting = 0;       // Work that has arrived and is not handled.
  };

  static Result<CapacityMeter> Make(const Config& config, Instant now);

  // Ends units that are over at `now` and says whether any was, that is
  // whether reading() is new.  All of the following count into the unit that
  // is open; call this first.  A `now` that steps back ends nothing.
  bool Advance(Instant now);

  // Work was read from the network, or is known to lie there.
  void Arrived(int64_t work) { open_.arrived += work; }
  // Work was executed; `busy` is the time that took.
  void Executed(int64_t work, Duration busy) {
    open_.executed += work;
    open_.busy += busy;
  }
  // Work was discarded unexecuted.
  void Dropped(int64_t work) { open_.dropped += work; }
  // The loop did something else.
  void OtherWork(Duration time) { open_.other += time; }

  const Reading& reading() const { return reading_; }
  // Work that has arrived and is not handled now.
  int64_t waiting() const { return waiting_ + open_.waiting_change(); }

 private:
  struct Unit {
    int64_t arrived = 0;
    int64_t executed = 0;
    int64_t dropped = 0;
    Duration busy{};
    Duration other{};
    int64_t waiting_change() const { return arrived - executed - dropped; }
  };

  CapacityMeter(const Config& config, Instant now);
  void EndUnit();
  double CapacityOver(size_t units) const;

  Config config_;
  size_t window_units_;
  Instant unit_end_;
  Unit open_;
  int64_t waiting_ = 0;  // When the open unit began.
  std::array<Unit, kMaxUnits> units_{};
  size_t last_ = 0;   // Index of the last full unit, and
  size_t count_ = 0;  // how many there are, up to window_units_.
  Reading reading_;
};

}  // namespace weir

#endif  // WEIR_STALE_CAPACITY_METER_H_
