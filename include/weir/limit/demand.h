// Demand: what is asked of a service, and whether that is an overload.
//
//   lambda   arrivals a second, with a memory of one second
//   E        the queue that there would be, had nothing been refused:
//              E = max(E + arrivals - X dt, queue), while places are free never
//              more than before
//
// An overload begins when E is more than can be answered in time, or when it
// is more than chance makes it (`likely`) and has not been served off for as
// long as `patience`.  It ends when E is 0.
//
// Until an overload has lasted for `patience`, what waits and can still be
// answered in time keeps its place: it may be a burst, and then the service
// has time for it when the burst is over.  What lasts longer is served best
// from a short queue, since all of a long one would be answered just in time.
// `patience` is learned: an overload that ended by itself was a burst, and the
// next one is given half as long again.
//
// Must hold: 0 <= E, finite; patience between its bounds; no overload while
// nothing is proved (Begin).
//
// Source: docs/algorithms/law.md, "Overload or burst".

#ifndef WEIR_LIMIT_DEMAND_H_
#define WEIR_LIMIT_DEMAND_H_

#include <cstdint>

#include "weir/time.h"

namespace weir {

// Not thread-safe; plain data.
struct Demand {
  // Memory of lambda, s: tells .95 from 1.0 of capacity at 1000 requests/s.
  static constexpr double kMemory = 1;

  // What the law knows when demand is held against it.
  struct Supply {
    double capacity = 0;  // X, 1/s; 0: unknown.
    double slack = 0;     // What a request's budget leaves for waiting, s.
    double target = 0;    // Q*, requests.
    bool proved = false;  // More inflight is known to give no more throughput.
    bool held_back = false;  // No place was free.
  };

  void Reset(double budget, Instant now);
  void Follow(int64_t arrivals, int64_t queued, const Supply& supply,
              Instant now);

  // Arrivals a second.
  double rate() const { return time > 0 ? count / time : 0; }
  // The overload has lasted: only Q* may wait.
  bool standing(Instant now) const;
  // The queue that can still be answered in time.
  static double Room(const Supply& supply);

  double count = 0;     // Decayed arrivals, and
  double time = 0;      // the decayed time they came in, s.
  Instant at{};         // When that was.
  double excess = 0;    // E, requests.
  double patience = 1;  // s
  double budget = 1;    // Of a request on average, s; patience's unit.
  Instant since{};      // When E was 0 last.
  bool overloaded = false;

 private:
  void End(Instant now);
};

}  // namespace weir

#endif  // WEIR_LIMIT_DEMAND_H_
