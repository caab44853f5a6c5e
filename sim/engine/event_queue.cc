#include "weir/sim/event_queue.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

namespace weir::sim {

namespace {

// A world that outgrows the queue is a broken model; going on would corrupt it.
[[noreturn]] void DieOfTooManyEvents() {
  std::fputs("weir: more than 2^24 events pending in the simulation\n", stderr);
  std::abort();
}

}  // namespace

EventQueue::Entry EventQueue::Take(Instant when, Handler& handler, uint64_t arg,
                                   bool in_lane) {
  uint32_t slot = free_;
  if (slot != kNoSlot) {
    free_ = static_cast<uint32_t>(pool_[slot].arg);
  } else {
    if (pool_.size() == kCapacity) DieOfTooManyEvents();
    slot = static_cast<uint32_t>(pool_.size());
    pool_.emplace_back();
  }
  const uint64_t order = sequence_++ << kSlotBits | slot;
  pool_[slot] = {&handler, arg, order, in_lane};
  ++pending_;
  return {std::max(when, now_).time_since_epoch().count(), order};
}

Timer EventQueue::At(Instant when, Handler& handler, uint64_t arg) {
  const Entry entry = Take(when, handler, arg, /*in_lane=*/false);
  Put(entry);
  return Timer(entry.order);
}

void EventQueue::Put(const Entry& entry) {
  const int64_t slot = WheelSlotOf(entry.when);
  if (slot <= wheel_at_) {
    heap_.emplace_back();
    SiftUp(heap_.size() - 1, entry);
  } else if (slot < wheel_end_) {
    const size_t index = static_cast<size_t>(slot) % kWheelSlots;
    wheel_[index].push_back(entry);
    occupied_[index / 64] |= uint64_t{1} << index % 64;
  } else {
    beyond_.push_back(entry);
  }
}

// Makes the next slot that holds anything the heap, unless that has something.
void EventQueue::Fill() {
  while (heap_.empty()) {
    // Slots up to wheel_at_ are empty, and those of the end are the last ones.
    size_t word = 0;
    while (word < occupied_.size() && occupied_[word] == 0) ++word;
    if (word == occupied_.size()) {
      if (!TurnWheel()) return;
      continue;
    }
    const size_t index =
        word * 64 + static_cast<size_t>(std::countr_zero(occupied_[word]));
    occupied_[word] &= occupied_[word] - 1;
    wheel_at_ = wheel_end_ - static_cast<int64_t>(kWheelSlots - index);
    for (const Entry& entry : wheel_[index]) {
      if (Dead(entry)) continue;
      const Event& event = pool_[SlotOf(entry.order)];
      event.handler->Expect(event.arg);
      heap_.push_back(entry);
    }
    wheel_[index].clear();
    if (heap_.size() < 2) continue;
    for (size_t i = (heap_.size() - 2) / kArity + 1; i-- > 0;) {
      SiftDown(i, heap_[i]);
    }
  }
}

// Goes on to the turn of the first that is beyond this one; false: there is
// none.  The wheel must be empty.
bool EventQueue::TurnWheel() {
  int64_t first = std::numeric_limits<int64_t>::max();
  size_t kept = 0;
  for (const Entry& entry : beyond_) {
    if (Dead(entry)) continue;
    first = std::min(first, entry.when);
    beyond_[kept++] = entry;
  }
  beyond_.resize(kept);
  if (kept == 0) return false;
  constexpr auto kSlots = static_cast<int64_t>(kWheelSlots);
  wheel_end_ = (WheelSlotOf(first) / kSlots + 1) * kSlots;
  wheel_at_ = wheel_end_ - kSlots - 1;
  const std::vector<Entry> entries = std::exchange(beyond_, {});
  for (const Entry& entry : entries) Put(entry);
  return true;
}

Timer EventQueue::InOrder(Instant when, Handler& handler, uint64_t arg) {
  if (!lane_.empty() && when.time_since_epoch().count() < lane_.back().when) {
    return At(when, handler, arg);
  }
  lane_.push_back(Take(when, handler, arg, /*in_lane=*/true));
  return Timer(lane_.back().order);
}

void EventQueue::Cancel(Timer& timer) {
  if (Pending(timer)) {
    const uint32_t slot = SlotOf(timer.order_);
    // Many are cancelled at once: what a refusal answers waits no longer.
    if (pool_[slot].in_lane && lane_.back().order == timer.order_) {
      lane_.pop_back();
    }
    Release(slot);
  }
  timer = Timer();
}

void EventQueue::RunUntil(Instant end) {
  const int64_t until = end.time_since_epoch().count();
  for (;;) {
    while (!heap_.empty() && Dead(heap_.front())) PopRoot();
    if (heap_.empty()) Fill();
    while (lane_head_ < lane_.size() && Dead(lane_[lane_head_])) PopLane();
    const bool from_lane =
        lane_head_ < lane_.size() &&
        (heap_.empty() || lane_[lane_head_].Before(heap_.front()));
    if (!from_lane && heap_.empty()) break;
    const Entry entry = from_lane ? lane_[lane_head_] : heap_.front();
    if (entry.when >= until) break;
    if (from_lane) {
      PopLane();
    } else {
      PopRoot();
    }
    Run(entry);
  }
  now_ = std::max(now_, end);
}

void EventQueue::Run(const Entry& entry) {
  const uint32_t slot = SlotOf(entry.order);
  Handler& handler = *pool_[slot].handler;
  const uint64_t arg = pool_[slot].arg;
  Release(slot);
  now_ = Instant(Duration(entry.when));
  ++executed_;
  handler.OnEvent(now_, arg);
}

void EventQueue::Release(uint32_t slot) {
  pool_[slot].order = 0;
  pool_[slot].arg = free_;
  free_ = slot;
  --pending_;
}

// What was taken stays in front until it is half of the lane, so that moving
// the rest up costs each entry one move.
void EventQueue::PopLane() {
  // So far ahead that the cache has time, and near enough to be still there.
  constexpr size_t kAhead = 8;
  if (lane_head_ + 2 * kAhead < lane_.size()) {
    __builtin_prefetch(&pool_[SlotOf(lane_[lane_head_ + 2 * kAhead].order)]);
    const Entry& entry = lane_[lane_head_ + kAhead];
    const Event& event = pool_[SlotOf(entry.order)];
    if (event.order == entry.order) event.handler->Expect(event.arg);
  }
  if (++lane_head_ == lane_.size()) {
    lane_.clear();
    lane_head_ = 0;
  } else if (lane_head_ >= 4096 && lane_head_ >= lane_.size() / 2) {
    lane_.erase(lane_.begin(),
                lane_.begin() + static_cast<std::ptrdiff_t>(lane_head_));
    lane_head_ = 0;
  }
}

void EventQueue::PopRoot() {
  const Entry last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) SiftDown(0, last);
}

void EventQueue::SiftUp(size_t hole, Entry entry) {
  while (hole > 0) {
    const size_t parent = (hole - 1) / kArity;
    if (!entry.Before(heap_[parent])) break;
    heap_[hole] = heap_[parent];
    hole = parent;
  }
  heap_[hole] = entry;
}

void EventQueue::SiftDown(size_t hole, Entry entry) {
  const size_t size = heap_.size();
  for (;;) {
    const size_t first = hole * kArity + 1;
    if (first >= size) break;
    size_t least = first;
    const size_t end = std::min(first + kArity, size);
    for (size_t child = first + 1; child < end; ++child) {
      if (heap_[child].Before(heap_[least])) least = child;
    }
    if (!heap_[least].Before(entry)) break;
    heap_[hole] = heap_[least];
    hole = least;
  }
  heap_[hole] = entry;
}

}  // namespace weir::sim
