// BucketWindow: what happened lately, in equal slices of the timeline.

#ifndef WEIR_RIVALS_BUCKET_WINDOW_H_
#define WEIR_RIVALS_BUCKET_WINDOW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "weir/time.h"

namespace weir::rivals {

// Two counters, a sum and a minimum, for whatever the owner likes to count.
struct Tally {
  int64_t count = 0;
  int64_t hits = 0;
  int64_t sum = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
};

// `buckets` slices of `width` each, aligned to the timeline's zero; the newest
// is the one that `now` lies in.  `now` must not be before that zero, and a
// step back counts into the newest slice.
class BucketWindow {
 public:
  BucketWindow(Duration width, int32_t buckets)
      : width_(width), ring_(static_cast<size_t>(buckets)) {}

  void Add(Instant now, const Tally& tally) {
    Advance(now);
    Join(ring_[static_cast<size_t>(newest_) % ring_.size()], tally, 1);
    Join(total_, tally, 1);
  }

  // Sums over all slices, the current one included; `least` is not kept.
  const Tally& Total(Instant now) {
    Advance(now);
    return total_;
  }

  // Calls visit(tally) for each slice, the oldest first.
  template <typename Visit>
  void ForEachInOrder(Instant now, Visit visit) {
    Advance(now);
    for (size_t i = 1; i <= ring_.size(); ++i) {
      visit(ring_[(static_cast<size_t>(newest_) + i) % ring_.size()]);
    }
  }

  // Calls visit(tally) for each slice, the current one only if `current`.
  template <typename Visit>
  void ForEach(Instant now, bool current, Visit visit) {
    Advance(now);
    for (size_t i = 0; i < ring_.size(); ++i) {
      const bool is_newest = i == static_cast<size_t>(newest_) % ring_.size();
      if (current || !is_newest) visit(ring_[i]);
    }
  }

 private:
  static void Join(Tally& into, const Tally& tally, int sign) {
    into.count += sign * tally.count;
    into.hits += sign * tally.hits;
    into.sum += sign * tally.sum;
    into.least = std::min(into.least, tally.least);
  }

  void Advance(Instant now) {
    const int64_t index = now.time_since_epoch() / width_;
    const auto size = static_cast<int64_t>(ring_.size());
    for (int64_t gone = std::max(newest_ + 1, index - size + 1); gone <= index;
         ++gone) {
      Tally& slice = ring_[static_cast<size_t>(gone % size)];
      Join(total_, slice, -1);
      slice = Tally{};
    }
    newest_ = std::max(newest_, index);
  }

  Duration width_;
  std::vector<Tally> ring_;
  int64_t newest_ = 0;
  Tally total_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_BUCKET_WINDOW_H_
