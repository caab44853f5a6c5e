// Quota allows a number of calls in a window of time.
//
//   fixed     windows of equal length, one after another.  Up to twice the
//             calls can fall into a span that crosses an edge.
//   sliding   what counts is an estimate of the calls in the span that ends
//             now: all of this window, and the part of the previous one that
//             the span still covers, as if its calls had come evenly:
//               calls so far = current + previous * (1 - elapsed / window)
//   calendar  the hours, days, weeks or months of a time zone, which the host
//             works out: the core knows no wall time.
//
// A call counts when it is admitted, before it runs, and is given back when a
// later stage refuses it.  So calls that run, that fail and that come at once
// all count, and of any number that race for the last one exactly one gets it.
//
// Source: docs/algorithms/quota.md, with the faults of the original.
//
// A wall clock that was ahead, and is put right, begins the window of now anew:
// its calls may be spent twice, once.  Else nothing would count for as long as
// the clock was ahead.
//
// Threads and processes: any.  All state of a kind is one atomic word, valid
// when zeroed; nothing runs at the end of a window.  O(1), lock-free.

#ifndef WEIR_RATE_QUOTA_H_
#define WEIR_RATE_QUOTA_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "weir/rate/window_word.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

class Quota {
 public:
  enum class Kind : uint8_t { kFixed, kSliding, kCalendar };
  enum class Unit : uint8_t { kHour, kDay, kWeek, kMonth };

  static constexpr Duration kShortestWindow = std::chrono::milliseconds(10);
  static constexpr Duration kLongestWindow = std::chrono::hours(24);
  // What the word has room for.
  static constexpr int64_t kMostCalls = 2'000'000'000;
  static constexpr int64_t kMostSlidingCalls = 1'000'000;

  struct Config {
    int64_t calls = 0;  // 0: none pass.  At most kMostCalls, or as above.
    Kind kind = Kind::kSliding;
    Duration window = std::chrono::minutes(1);  // Not for kCalendar.
    Unit unit = Unit::kDay;                     // For kCalendar.

    bool operator==(const Config&) const = default;
  };

  // The window of the calendar that is now.
  struct Period {
    uint32_t number = 0;  // Grows by one from each to the next.
    Duration left{};      // Until its end.  Above zero.
  };

  struct Answer {
    bool admitted = false;
    uint32_t window = 0;  // For GiveBack().
    int64_t counted = 0;  // Calls that count now, this one not.
    // Refused: after what time a call is first admitted if no other comes
    // between; kForEver when never.  Zero when admitted.
    Duration retry_after{};
  };
  static constexpr Duration kForEver = Duration::max();

  static std::optional<Error> Check(const Config& config);

  // Decides one call and counts it if it is admitted.  Of kind kFixed or
  // kSliding, at `now`; of kCalendar, in `period`.
  [[nodiscard]] Answer Take(const Config& config, Instant now);
  [[nodiscard]] Answer Take(const Config& config, const Period& period);

  // What Take() would answer, changing nothing.
  Answer Peek(const Config& config, Instant now) const;
  Answer Peek(const Config& config, const Period& period) const;

  // A call that was counted in `window` does not run after all.  Nothing
  // happens if that window is over (the one before the last, for kSliding).
  void GiveBack(const Config& config, uint32_t window);

 private:
  static uint64_t LatePeriods(const Config& config, const Period& period);

  static constexpr int kNumberBits = 24;
  static constexpr int kCallsBits = 20;
  struct Sliding {
    uint64_t window, previous, current;
  };
  static Sliding ReadSliding(uint64_t word, uint64_t window);
  static Answer JudgeFixed(const Config& config,
                           const WindowWord<32>::Reading& reading,
                           Duration left);
  static Answer JudgeSliding(const Config& config, const Sliding& state,
                             Instant now);

  WindowWord<32> calls_;
  // Window, calls of the one before it, its own calls.
  Shared<uint64_t> sliding_{0};
};

}  // namespace weir

#endif  // WEIR_RATE_QUOTA_H_
