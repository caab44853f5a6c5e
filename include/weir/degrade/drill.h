// A Drill turns a degrade level on for a share of one resource's requests, for
// a time, so that the cheaper branch is known to work before it is needed.
//
// It is one word that any worker reads, and the first that sees an overload
// sets to 0: so it ends by itself in time or at an overload, also when whoever
// started it is gone.  Which requests it takes is a hash of client, arrival
// and the drill: the share is the same for every client, and a request that
// is played again meets the same fate.
//
// Source: [SRE2016] chapter 22: a degraded path that never runs usually does
// not work; exercise it on a small share, near overload but not in it.

#ifndef WEIR_DEGRADE_DRILL_H_
#define WEIR_DEGRADE_DRILL_H_

#include <cstddef>
#include <cstdint>

#include "weir/request.h"
#include "weir/time.h"

namespace weir {

// What a drill has to do with a request of its resource.
enum class DrillSide : uint8_t {
  kControl,  // Answered as ever, to compare with.
  kDrilled,
  kNone,  // No drill, or of another resource.
};
inline constexpr size_t kDrillSides = 2;  // Those that are counted.

struct Drill {
  static constexpr int kShareBits = 14;
  static constexpr uint32_t kWhole = 1U << kShareBits;  // All of them.

  // Row of the resource in the region.
  uint16_t row = 0;    // [0, 63]
  uint8_t level = 0;   // [1, 7]; 0: there is no drill.
  uint32_t share = 0;  // Of kWhole, [1, kWhole].
  Instant until{};     // Rounded up to milliseconds.

  bool ActiveAt(Instant now) const { return level != 0 && now < until; }
  // Whether it takes this request.
  bool Takes(const Request& request) const;

  // 0 when there is no drill.
  uint64_t Pack() const;
  static Drill Unpack(uint64_t word);

  bool operator==(const Drill&) const = default;
};

}  // namespace weir

#endif  // WEIR_DEGRADE_DRILL_H_
