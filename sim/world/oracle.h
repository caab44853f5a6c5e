// The oracle: what could have been done at best.
//
// It knows what the service can do at every instant and what each request will
// take, and treats work as a fluid.  In each slot of time it gives what every
// resource can do to the requests that are the first to become useless,
// whatever their class: so nothing is lost that could be done.  What is lost
// nevertheless is made up to the more critical ones: as much of the least
// critical work that was done since they came is taken to have been left
// undone instead (an exchange argument: the result is the most that can be
// done of the most critical class, of what is left the most of the next one,
// and so on).  Requests that could never be in time, because they take longer
// than they have, count for nothing.
//
// What waits when an overload ends, at the last arrival that is too much, is
// not asked of anybody: only who keeps all callers waiting for their whole
// deadline could still do it, and to keep queues short is the better service.
// The time that it took goes to what has come since, which would have waited
// behind it.  When that was is known two deadlines later; only then is a slot
// reported.
//
// Refusing costs cpu time: it is charged for each request as it arrives and
// given back to those that are served, so that of C, at m times C and a cost
// of k services, C (1 - k m) / (1 - k) is left.
//
// Requests that need different resources are held apart, and made up for among
// themselves only.  That is the optimum unless classes compete for two
// resources crosswise.

#ifndef WEIR_SIM_WORLD_ORACLE_H_
#define WEIR_SIM_WORLD_ORACLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/time.h"

namespace weir::sim {

inline constexpr size_t kMaxResourcesOfOracle = 24;

// What one request asks of the world.
struct Need {
  Duration latency{};  // At least: all stages, calls and journeys, no queue.
  Duration work{};     // In stages that queue, of all tiers.
  uint32_t used = 0;   // Bit r: it needs resource r.
  std::array<Duration, kMaxResourcesOfOracle> of{};

  // Adds what follows after this, or (for fan-outs) at the same time.
  void Then(const Need& other);
  void Beside(const Need& other);
};

// Is told what the oracle did.
class OracleListener {
 public:
  // In the slot that began at `slot`, so much work (seconds) of class `cls`,
  // and so many requests of mean work, was finished.
  virtual void OnIdeal(Duration slot, size_t cls, double work,
                       double requests) = 0;
  // What came at `arrived` was given up; work has been waiting without a break
  // since `since`.
  virtual void OnIdealLoss(Duration arrived, Duration since) = 0;

 protected:
  ~OracleListener() = default;
};

class Oracle {
 public:
  // `reject_cost` is charged to resource 0.
  Oracle(OracleListener& listener, size_t classes, size_t resources,
         Duration longest_deadline, Duration reject_cost);

  // From `now` on `resource` does so much work per second (seconds per
  // second): its workers, by their speed.
  void SetCapacity(size_t resource, double capacity, Duration now);

  // From now on this much work counts as one request, so that the ideal in
  // requests does not depend on which of them it prefers.  Zero: each is one.
  void SetMeanWork(double seconds) { mean_work_ = seconds; }

  // A request of `cls` that must be answered within `budget`.  False when
  // that is impossible.
  bool Arrive(size_t cls, const Need& need, Duration budget, Duration now);

  // Plays all slots that end at or before `now`.
  void AdvanceTo(Duration now);

  // A slot is reported when so much time has passed since its beginning.
  Duration slot() const { return slot_; }
  Duration lag() const { return slot_ * static_cast<int64_t>(kept_slots_); }

 private:
  struct Amount {
    double work = 0;  // Seconds.
    double requests = 0;
    double arrived = 0;  // Their sum of arrivals, in slots.

    // In slots, on average.
    double arrival() const { return arrived / requests; }
  };
  // The requests of a class that need the same resources, by the slot in
  // which they must be done at the latest.
  struct Line {
    size_t cls = 0;
    uint32_t used = 0;
    std::vector<Amount> waiting;  // A ring.
    std::vector<double> need;     // Of each of those, what of each resource.
    int64_t earliest = 0;         // No cell before this slot holds anything.
    bool blocked = false;         // A resource it needs is spent in this slot.
    Amount total;                 // Of all cells.
    // What was done in each slot that is not reported yet.
    std::vector<Amount> done;  // A ring.
    int64_t oldest_done = 0;   // Nothing before this slot may be exchanged.
    // Work of each of those slots that went elsewhere: its time is free.
    std::vector<double> freed;
    int64_t next_early = 0;  // Nothing before this slot can be done earlier.
  };

  static Amount Share(Amount amount, double share) {
    return {amount.work * share, amount.requests * share,
            amount.arrived * share};
  }
  static void Add(Amount& to, Amount amount);
  static void Subtract(Amount& from, Amount amount);

  Line& LineOf(size_t cls, uint32_t used);
  size_t CellAt(int64_t slot) const {
    return static_cast<size_t>(slot) & (ring_size_ - 1);
  }
  Line* NextToServe();
  void PlaySlot();
  void Serve(Line& line);
  void Expire(Line& line);
  void MakeUp(Line& line, Amount lost);
  void Report(int64_t slot);
  void DoEarlier(Line& line, int64_t slot, double& room);
  Amount& DoneIn(Line& line, int64_t slot) {
    return line.done[static_cast<size_t>(slot) & (kept_size_ - 1)];
  }
  double& FreedIn(Line& line, int64_t slot) {
    return line.freed[static_cast<size_t>(slot) & (kept_size_ - 1)];
  }

  OracleListener& listener_;
  const size_t resources_;
  const Duration slot_;
  const size_t ring_slots_;
  const size_t kept_slots_;
  const size_t ring_size_;  // Powers of two that have room for those.
  const size_t kept_size_;
  const double reject_cost_;
  double mean_work_ = 0;
  int64_t now_slot_ = 0;  // The slot that is being filled.
  Duration charged_until_{};
  Duration waiting_since_{};
  double last_lost_ = -1;  // Arrival of the newest work given up, in slots.
  std::vector<double> capacity_;
  std::vector<double> room_;  // What is left of each resource in this slot.
  std::vector<Line> lines_;   // Most critical first.
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_ORACLE_H_
