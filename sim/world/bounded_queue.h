// The queue that rivals are given, so that their laws are compared and not
// their queues: bounded, most critical first.
//
// While demand is below capacity, only the deadline bounds waiting (half of
// it); while it exceeds capacity, 8 sqrt(n) may wait, n being the requests
// that capacity keeps in service.  Who does not fit pushes out the oldest of
// the least critical class, if that is less critical or demand exceeds
// capacity.  Capacity is measured over 32 completions at a time.
//
// Source: docs/algorithms/law.md, queue law and the law for known workers.

#ifndef WEIR_SIM_WORLD_BOUNDED_QUEUE_H_
#define WEIR_SIM_WORLD_BOUNDED_QUEUE_H_

#include <array>
#include <cstdint>

#include "weir/request.h"
#include "weir/sim/visit.h"
#include "weir/time.h"

namespace weir::sim {

class BoundedQueue {
 public:
  enum class Kind : uint8_t {
    kPriority,  // As above.
    kFifo,      // One line for all classes, bounded by half the deadline alone.
  };

  BoundedQueue(Kind kind, Duration deadline)
      : kind_(kind), deadline_(ToSeconds(deadline)) {}

  // A request arrived, whether it will wait or not.
  void OnArrival(Instant now);
  // One that ran ended after `latency` in service.
  void OnFinish(Duration latency, Instant now);

  // Admits `visit` to the queue, or returns what is to be refused for it:
  // itself, or one that has been taken out.  Call again while another than
  // itself came back; null: it waits.
  Visit* Push(Visit& visit, Instant now);

  // Next to run, or null.  `newest`: last come first served in its class.
  Visit* Next(bool newest) const;
  void Remove(Visit& visit);

  // One whose deadline has come or that, in a priority queue, cannot be
  // answered in time if it takes as long as others do; null: none.
  Visit* NextHopeless(Instant now) const;
  // The earliest deadline of those that are first in their lines.
  Instant NextDeadline() const;

  int64_t size() const { return size_; }
  // The longest that any of them has waited.
  Duration HeadDelay(Instant now) const;

 private:
  struct Line {
    Visit* first = nullptr;
    Visit* last = nullptr;
  };

  size_t LineOf(const Visit& visit) const {
    return kind_ == Kind::kFifo ? 0 : Index(visit.request.criticality);
  }
  Visit* LeastCritical() const;
  double Bound() const;
  double Target() const;

  const Kind kind_;
  const double deadline_;  // Seconds.
  std::array<Line, kCriticalities> lines_;
  int64_t size_ = 0;
  bool shedding_ = false;

  double demand_ = 0;  // 1/s
  int64_t arrivals_ = 0;
  Instant arrivals_since_{};

  double capacity_ = 0;  // 1/s; 0: unknown.
  double latency_ = 0;   // Seconds; smoothed.
  int64_t completions_ = 0;
  Instant completions_since_{};
  bool always_waiting_ = true;  // In this window of completions.
};

}  // namespace weir::sim

#endif  // WEIR_SIM_WORLD_BOUNDED_QUEUE_H_
