// DuePlaces counts places by the deadline of the request that holds them, so
// that those which are long overdue can be taken back.
//
// Nobody waits for an answer after its deadline.  The service may still be at
// work for it, but not for ever: a request that is overdue by more than others
// take hangs on something else, and its place serves nobody.
//
// Deadlines are rounded up to an eighth of the usual budget; there is room for
// deadlines and delays of eight budgets in all.  A request that is outside of
// that never lapses.
//
// Not thread-safe.  O(1), amortised.

#ifndef WEIR_QUEUE_DUE_PLACES_H_
#define WEIR_QUEUE_DUE_PLACES_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "weir/time.h"

namespace weir {

class DuePlaces {
 public:
  static constexpr int64_t kBuckets = 64;
  static constexpr int64_t kPerBudget = 8;

  // `budget` > 0.
  DuePlaces(Duration budget, Instant now)
      : width_(std::max<int64_t>(1, budget.count() / kPerBudget)),
        first_(BucketOf(now)) {}

  // Longest that an overdue request may be waited for.
  Duration longest() const { return Duration(width_ * kBuckets / 2); }

  // False when Lapse() must be called for `deadline` to be counted.
  bool Reaches(Instant deadline) const {
    return deadline == kNever || BucketOf(deadline) + 1 < first_ + kBuckets;
  }

  // Counts a place; what is to be given to Remove(), 0 when it never lapses.
  uint32_t Add(Instant deadline) {
    if (deadline == kNever) return 0;
    const int64_t bucket = BucketOf(deadline) + 1;
    if (bucket < first_ || bucket >= first_ + kBuckets) return 0;
    ++counts_[Index(bucket)];
    return static_cast<uint32_t>(bucket);
  }

  // False when the place has lapsed, so that there is none to give back.
  bool Remove(uint32_t due) {
    if (due == 0) return true;
    if (static_cast<int32_t>(due - static_cast<uint32_t>(first_)) < 0) {
      return false;
    }
    --counts_[due % kBuckets];
    return true;
  }

  // Takes back what was due before `then`, but no more than `most`; how many
  // places that is.
  int64_t Lapse(Instant then, int64_t most) {
    const int64_t end = BucketOf(then);
    int64_t lapsed = 0;
    const int64_t last = std::min(end, first_ + kBuckets);
    for (; first_ < last; ++first_) {
      int32_t& count = counts_[Index(first_)];
      if (lapsed + count > most) return lapsed;
      lapsed += count;
      count = 0;
    }
    first_ = std::max(first_, end);
    return lapsed;
  }

 private:
  int64_t BucketOf(Instant t) const {
    return t.time_since_epoch().count() / width_;
  }
  static size_t Index(int64_t bucket) {
    return static_cast<size_t>(static_cast<uint32_t>(bucket) % kBuckets);
  }

  int64_t width_;  // ns
  int64_t first_;  // All buckets before it have lapsed.
  std::array<int32_t, kBuckets> counts_{};
};

}  // namespace weir

#endif  // WEIR_QUEUE_DUE_PLACES_H_
