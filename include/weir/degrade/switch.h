// Switch is what an operator set for one resource: pause it, or answer it at a
// degrade level, for good or for a time.
//
// It is one word, so that a decision reads it whole, whoever sets it anew at
// that moment.  Time is that of the region: what ends, ends by itself at the
// first decision after it, without anybody's help.

#ifndef WEIR_DEGRADE_SWITCH_H_
#define WEIR_DEGRADE_SWITCH_H_

#include <cstdint>

#include "weir/time.h"

namespace weir {

struct Switch {
  enum class Action : uint8_t {
    kNone,     // As the policy says.
    kPause,    // All of it is refused.
    kDegrade,  // Answered at `level`, whatever the ladder would choose.
  };
  static constexpr uint8_t kMaxLevel = 15;

  Action action = Action::kNone;
  uint8_t level = 0;       // Of kDegrade, [0, kMaxLevel]; 0: in full.
  Instant until = kNever;  // From then on it is as if it were kNone.

  bool ActiveAt(Instant now) const {
    return action != Action::kNone && now < until;
  }

  // 0 for kNone; `until` is rounded up to milliseconds.
  uint64_t Pack() const {
    if (action == Action::kNone) return 0;
    return static_cast<uint64_t>(action) << 62 |
           static_cast<uint64_t>(level & kMaxLevel) << 58 | PackEnd(until);
  }
  static Switch Unpack(uint64_t word) {
    if (word >> 62 == 0) return {};
    return {.action = static_cast<Action>(word >> 62),
            .level = static_cast<uint8_t>(word >> 58 & kMaxLevel),
            .until = UnpackEnd(word & kEndMask)};
  }

  bool operator==(const Switch&) const = default;

 private:
  // In milliseconds; all ones: never.
  static constexpr uint64_t kEndMask = (uint64_t{1} << 58) - 1;
  static uint64_t PackEnd(Instant end) {
    if (end == kNever) return kEndMask;
    const int64_t ns = end.time_since_epoch().count();
    return ns <= 0 ? 0 : static_cast<uint64_t>(ns - 1) / 1'000'000 + 1;
  }
  static Instant UnpackEnd(uint64_t ms) {
    constexpr uint64_t kMost = INT64_MAX / 1'000'000;
    if (ms > kMost) return kNever;
    return Instant(Duration(static_cast<int64_t>(ms) * 1'000'000));
  }
};

}  // namespace weir

#endif  // WEIR_DEGRADE_SWITCH_H_
