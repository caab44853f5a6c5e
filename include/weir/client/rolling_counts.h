// RollingCounts: how often it went well, and how often not, of late.
//
// The window moves in slices of a fortieth of its length.  Sums of slices that
// are over are kept until the next one is, so that asking costs four loads.
//
// Threads: any, without locks.  One thread gets exact sums; with several, an
// event at the border of two slices may count in either, and the few that
// race with the first use of a slice after a whole window may be lost.

#ifndef WEIR_CLIENT_ROLLING_COUNTS_H_
#define WEIR_CLIENT_ROLLING_COUNTS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "weir/time.h"

namespace weir {

class RollingCounts {
 public:
  // Source: [GO-ZERO] breaker, 40 buckets.
  static constexpr int64_t kSlices = 40;

  struct Sums {
    int64_t good = 0;
    int64_t bad = 0;
    int64_t all() const { return good + bad; }
  };

  // `window` >= 40 ns; what divides by 40 is used.
  explicit RollingCounts(Duration window) : width_(window / kSlices) {}

  // An instant before one that was given earlier counts as that one.
  void AddGood(Instant now) { Add(good_, now); }
  void AddBad(Instant now) { Add(bad_, now); }

  // Of the slice that `now` lies in and the 39 before it.
  Sums Sum(Instant now) const;

  // Forgets everything.
  void Clear(Instant now);

 private:
  // The low half of the index of a slice, and a count that is only meant for
  // that slice: a ring needs no sweeping then.
  using Slice = std::atomic<uint64_t>;
  using Ring = std::array<Slice, kSlices>;

  void Add(Ring& ring, Instant now);
  int64_t IndexAt(Instant now) const;
  void SumClosed(int64_t index) const;

  const Duration width_;
  Ring good_{};
  Ring bad_{};
  std::atomic<int64_t> since_ = 1;  // Older slices were forgotten.
  // Sums of the slices before `closed_at_`, or of none yet when it is 0.
  mutable std::atomic<int64_t> closed_at_ = 0;
  mutable std::atomic<int64_t> closed_good_ = 0;
  mutable std::atomic<int64_t> closed_bad_ = 0;
};

}  // namespace weir

#endif  // WEIR_CLIENT_ROLLING_COUNTS_H_
