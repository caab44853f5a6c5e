// WindowWord: a number that belongs to one window of time, in one atomic word.
//
//   high bits   which window: its number on a timeline cut into equal windows,
//               modulo 2^kNumberBits
//   low bits    the number itself
//
// There is no timer: whoever comes first in a new window starts it from zero,
// in the same step that counts him, so no count is ever lost or kept by a
// reset.  A caller whose `window` lies up to kLate behind the word's counts in
// the word's: he read his clock before somebody else did, and going back would
// begin the window anew.
//
// A word that nobody touched for exactly 2^kNumberBits windows, or up to kLate
// fewer, is taken for current.  With 32 bits and windows of a second that is
// after 136 years.
//
// Threads and processes: any.  Lock-free; valid when zeroed.

#ifndef WEIR_RATE_WINDOW_WORD_H_
#define WEIR_RATE_WINDOW_WORD_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "weir/shared.h"
#include "weir/time.h"

namespace weir {

// Number of the window that `now` lies in.
constexpr uint64_t WindowNumber(Instant now, Duration window) {
  const Duration since = now.time_since_epoch();
  // Rounds down, below zero as well.
  return static_cast<uint64_t>(since / window - (since % window < Duration(0)));
}

// How long that window still lasts; in (0, window].
constexpr Duration WindowLeft(Instant now, Duration window) {
  const Duration into = now.time_since_epoch() % window;
  return into < Duration(0) ? -into : window - into;
}

template <int kNumberBits>
class WindowWord {
 public:
  static constexpr int kValueBits = 64 - kNumberBits;
  static constexpr uint64_t kMost = (uint64_t{1} << kValueBits) - 1;
  static constexpr uint64_t kNumbers = (uint64_t{1} << kNumberBits) - 1;
  // Chosen: clocks of one machine differ by far less than sixteen of the
  // shortest windows, 10 ms.
  static constexpr uint64_t kLate = 16;

  struct Reading {
    uint64_t window = 0;  // Modulo 2^kNumberBits.
    uint64_t value = 0;
  };

  // The word as it counts for a caller in `window`, who is at most `late`
  // windows behind.
  Reading Read(uint64_t window, uint64_t late = kLate) const {
    return Resolve(word_.load(std::memory_order_relaxed), window, late);
  }

  // Exchanges the value by `change(value)` unless that answers nothing.
  // Returns what was read last, before the change.  `change` may be called
  // several times.
  template <typename Change>
  Reading Update(uint64_t window, Change change, uint64_t late = kLate) {
    uint64_t seen = word_.load(std::memory_order_relaxed);
    while (true) {
      const Reading reading = Resolve(seen, window, late);
      const auto value = change(reading.value);
      if (!value) return reading;
      const uint64_t next =
          reading.window << kValueBits | std::min<uint64_t>(*value, kMost);
      if (word_.compare_exchange_weak(seen, next, std::memory_order_relaxed)) {
        return reading;
      }
    }
  }

  // Takes one away in `window`, unless that is over or nothing is left.
  void TakeAway(uint64_t window) {
    uint64_t seen = word_.load(std::memory_order_relaxed);
    while (seen >> kValueBits == (window & kNumbers) && (seen & kMost) != 0 &&
           !word_.compare_exchange_weak(seen, seen - 1,
                                        std::memory_order_relaxed)) {
    }
  }

  void Reset() { word_.store(0, std::memory_order_relaxed); }

 private:
  static Reading Resolve(uint64_t word, uint64_t window, uint64_t late) {
    window &= kNumbers;
    const uint64_t stored = word >> kValueBits;
    const uint64_t behind = (stored - window) & kNumbers;
    return behind <= late ? Reading{stored, word & kMost} : Reading{window, 0};
  }

  Shared<uint64_t> word_{0};
};

}  // namespace weir

#endif  // WEIR_RATE_WINDOW_WORD_H_
