#include "weir/sim/event_queue.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>

namespace weir::sim {

namespace {

// A world that outgrows the queue is a broken model; going on would corrupt it.
[[noreturn]] void DieOfTooManyEvents() {
  std::fputs("weir: more than 2^24 events pending in the simulation\n", stderr);
  std::abort();
}

}  // namespace

Timer EventQueue::At(Instant when, Handler& handler, uint64_t arg) {
  uint32_t slot = free_;
  if (slot != kNoSlot) {
    free_ = pool_[slot].next_free;
  } else {
    if (pool_.size() == kCapacity) DieOfTooManyEvents();
    slot = static_cast<uint32_t>(pool_.size());
    pool_.emplace_back();
  }
  Event& event = pool_[slot];
  event.handler = &handler;
  event.arg = arg;
  const Entry entry{std::max(when, now_).time_since_epoch().count(),
                    sequence_++ << kSlotBits | slot};
  heap_.emplace_back();
  SiftUp(heap_.size() - 1, entry);
  return Timer(slot, event.generation);
}

void EventQueue::Cancel(Timer& timer) {
  if (Pending(timer)) {
    Event& event = pool_[timer.slot_];
    event.handler = nullptr;
    if (++event.generation == 0) event.generation = 1;
    // Below this size a sweep saves nothing worth its call.
    constexpr size_t kMinSweep = 256;
    if (++dead_ > kMinSweep && dead_ > heap_.size() / 2) Sweep();
  }
  timer = Timer();
}

void EventQueue::RunUntil(Instant end) {
  while (!heap_.empty()) {
    const Entry root = heap_.front();
    if (root.when >= end.time_since_epoch().count()) break;
    const uint32_t slot = SlotOf(root);
    Event& event = pool_[slot];
    Handler* const handler = event.handler;
    const uint64_t arg = event.arg;
    PopRoot();
    if (handler == nullptr) {
      --dead_;
      Release(slot);
      continue;
    }
    if (++event.generation == 0) event.generation = 1;
    Release(slot);
    now_ = Instant(Duration(root.when));
    ++executed_;
    handler->OnEvent(now_, arg);
  }
  now_ = std::max(now_, end);
}

void EventQueue::Release(uint32_t slot) {
  pool_[slot].handler = nullptr;
  pool_[slot].next_free = free_;
  free_ = slot;
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

// The heap's order is total, so rebuilding it changes no outcome.
void EventQueue::Sweep() {
  size_t kept = 0;
  for (const Entry& entry : heap_) {
    const uint32_t slot = SlotOf(entry);
    if (pool_[slot].handler == nullptr) {
      Release(slot);
    } else {
      heap_[kept++] = entry;
    }
  }
  heap_.resize(kept);
  dead_ = 0;
  for (size_t i = kept < 2 ? 0 : (kept - 2) / kArity + 1; i-- > 0;) {
    SiftDown(i, heap_[i]);
  }
}

}  // namespace weir::sim
