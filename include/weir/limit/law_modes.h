// What the law remembers in each of its modes; limit_law.h tells what they are.

#ifndef WEIR_LIMIT_LAW_MODES_H_
#define WEIR_LIMIT_LAW_MODES_H_

#include <cstdint>

namespace weir::law {

// Sums over latencies.
struct Samples {
  double count = 0;
  double sum = 0;     // s
  double sq_sum = 0;  // s^2
  double held = 0;    // Places times the time that they were held, s.
  void Add(const Samples& more) {
    count += more.count;
    sum += more.sum;
    sq_sum += more.sq_sum;
    held += more.held;
  }
};

struct Search {
  double level = 0;       // The limit before it was raised last, and
  double throughput = 0;  // what it gave, 1/s; 0: this level is the first.
  int needed = 2;    // So many raises in a row that bring nothing end it, and
  int flat = 0;      // so many have.
  double good = 0;   // Throughput in time at the level before, 1/s.
  Samples below{};   // Of the levels below the last raise that was followed.
  Samples latest{};  // Of the level before this one.
};

struct Cruise {
  bool growing = false;  // The last bound round showed much more than X.
  bool falling = false;  // It showed much less.
};

struct Up {};

// Less for a while: does it do as much?
struct Drain {
  enum class Phase : uint8_t {
    kEmpty,   // Until inflight has fallen to the lowered limit.
    kSettle,  // Until what was started before has left.
    kTake,    // Measuring.
  };
  Phase phase = Phase::kEmpty;
  double limit = 1;       // Before it was lowered,
  double throughput = 0;  // what that gave, 1/s,
  double good = 0;        // and of that in time.
  bool in_vain = false;   // Most answers came too late, or not at all.
};

struct Known {};

}  // namespace weir::law

#endif  // WEIR_LIMIT_LAW_MODES_H_
