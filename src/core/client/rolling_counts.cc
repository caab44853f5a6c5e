#include "weir/client/rolling_counts.h"

#include <algorithm>

#include "../relaxed.h"

namespace weir {
namespace {

constexpr uint64_t TagOf(int64_t index) {
  return static_cast<uint64_t>(static_cast<uint32_t>(index)) << 32;
}

// The slice of a ring that holds index `i`; the count in it when it does.
int64_t CountIn(uint64_t slice, int64_t index) {
  const uint64_t tag = TagOf(index);
  return (slice & ~uint64_t{0xffffffff}) == tag
             ? static_cast<int64_t>(slice & 0xffffffff)
             : 0;
}

}  // namespace

// From 1 on, so that a slice of zeros holds nothing.
int64_t RollingCounts::IndexAt(Instant now) const {
  return std::max(now.time_since_epoch() / width_ + 1,
                  closed_at_.load(kRelaxed));
}

void RollingCounts::Add(Ring& ring, Instant now) {
  const int64_t index = IndexAt(now);
  Slice& slice = ring[static_cast<size_t>(index % kSlices)];
  uint64_t seen = slice.load(kRelaxed);
  while ((seen & ~uint64_t{0xffffffff}) != TagOf(index)) {
    if (slice.compare_exchange_weak(seen, TagOf(index) | 1, kRelaxed)) return;
  }
  slice.fetch_add(1, kRelaxed);
}

void RollingCounts::SumClosed(int64_t index) const {
  int64_t good = 0;
  int64_t bad = 0;
  const int64_t oldest = std::max(index - kSlices + 1, since_.load(kRelaxed));
  for (int64_t i = oldest; i < index; ++i) {
    const auto place = static_cast<size_t>(i % kSlices);
    good += CountIn(good_[place].load(kRelaxed), i);
    bad += CountIn(bad_[place].load(kRelaxed), i);
  }
  closed_good_.store(good, kRelaxed);
  closed_bad_.store(bad, kRelaxed);
  closed_at_.store(index, std::memory_order_release);
}

RollingCounts::Sums RollingCounts::Sum(Instant now) const {
  const int64_t index = IndexAt(now);
  if (closed_at_.load(std::memory_order_acquire) != index) SumClosed(index);
  const auto place = static_cast<size_t>(index % kSlices);
  return {
      closed_good_.load(kRelaxed) + CountIn(good_[place].load(kRelaxed), index),
      closed_bad_.load(kRelaxed) + CountIn(bad_[place].load(kRelaxed), index)};
}

void RollingCounts::Clear(Instant now) {
  const int64_t index = IndexAt(now);
  since_.store(index, kRelaxed);
  const auto place = static_cast<size_t>(index % kSlices);
  good_[place].store(TagOf(index), kRelaxed);
  bad_[place].store(TagOf(index), kRelaxed);
  SumClosed(index);
}

}  // namespace weir
