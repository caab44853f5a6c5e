// EventQueue is the clock of a simulated world: what happens next, and when.
//
// A heap would do.  Most of a world's events are far away when they are
// scheduled, though, and what is far away need not be in order yet: it waits in
// the slots of a timing wheel, half a millisecond each, and is sorted when its
// slot comes.  So the heap is small, and stays in the fastest cache.  What lies
// beyond the wheel waits in a list until the wheel has turned.
//
// An entry is 16 bytes, an instant and its order among equals.  Who is called,
// and with what, stands in a pool that only grows while more events are pending
// than ever before, so that a run allocates nothing per event and its memory
// does not grow with its length.
//
// Timers that all take equally long, such as callers' timeouts, come in order
// by themselves.  They stand in a lane beside the heap, of which only the first
// is looked at: with a hundred thousand of them pending, and nearly all
// cancelled, sorting them would be most of the work of a world.
//
// Events of one instant run in the order in which they were scheduled, which
// makes a run a function of its inputs alone.
//
// Source: [VARGHESE1987] scheme 4.  Its slots are a tick and hold what is due;
// ours are longer, and a heap puts what one holds in order.

#ifndef WEIR_SIM_EVENT_QUEUE_H_
#define WEIR_SIM_EVENT_QUEUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/time.h"

namespace weir::sim {

// What an event calls.  Must outlive its pending events.
class Handler {
 public:
  // `arg` is what At() was given.  May schedule and cancel.
  virtual void OnEvent(Instant now, uint64_t arg) = 0;
  // It comes soon, unless it is cancelled: may bring into the cache what it
  // will touch, and nothing else.
  virtual void Expect(uint64_t) {}

 protected:
  ~Handler() = default;
};

// Names a pending event.  Default: none.
class Timer {
 public:
  Timer() = default;

 private:
  friend class EventQueue;
  explicit Timer(uint64_t order) : order_(order) {}

  uint64_t order_ = 0;  // Of its entry; 0 is none's.
};

class EventQueue {
 public:
  // At most this many events may be pending at once.
  static constexpr size_t kCapacity = size_t{1} << 24;

  // The instant of the event that runs or ran last; at first the epoch.
  Instant now() const { return now_; }

  // Calls `handler` at `when`, or as the next event if that has passed.
  // O(1), and O(log n) of the n events within half a millisecond to run it.
  Timer At(Instant when, Handler& handler, uint64_t arg = 0);
  Timer After(Duration delay, Handler& handler, uint64_t arg = 0) {
    return At(now_ + delay, handler, arg);
  }

  // The same for events that mostly come in order of time, as those do that
  // are all equally far away.  O(1), and as At() for one that is earlier than
  // its predecessor.
  Timer InOrder(Instant when, Handler& handler, uint64_t arg = 0);

  // Forgets an event and empties the handle.  One that ran, was cancelled or
  // never was is left alone.  O(1): the entry stays where it is as a dead one,
  // at most until its time or that of the next turn of the wheel.
  void Cancel(Timer& timer);

  // Whether the event is still to come.
  bool Pending(const Timer& timer) const {
    return timer.order_ != 0 &&
           pool_[SlotOf(timer.order_)].order == timer.order_;
  }

  // Runs all events before `end`, then sets the clock to `end`.
  void RunUntil(Instant end);

  // Events that were run, without the cancelled ones.
  uint64_t executed() const { return executed_; }
  size_t pending() const { return pending_; }

 private:
  struct Entry {
    int64_t when = 0;
    uint64_t order = 0;  // Sequence number << kSlotBits | slot.

    __extension__ using Wide = unsigned __int128;

    bool Before(const Entry& other) const { return Key() < other.Key(); }
    // Instants are not negative.  One number is compared without a branch.
    Wide Key() const { return static_cast<Wide>(when) << 64 | order; }
  };
  struct Event {
    Handler* handler = nullptr;
    uint64_t arg = 0;    // Of a free one: the next that is free.
    uint64_t order = 0;  // 0: free.  An entry with another order is dead.
    bool in_lane = false;
  };
  static constexpr unsigned kSlotBits = 24;
  static constexpr size_t kArity = 4;
  // Chosen: the wheel spans half a second, which holds all but the longest
  // timers; at a hundred thousand events a second a slot has fifty.
  static constexpr unsigned kWheelShift = 19;  // Bits of a slot's nanoseconds.
  static constexpr size_t kWheelSlots = 1024;

  static uint32_t SlotOf(uint64_t order) {
    return static_cast<uint32_t>(order & (kCapacity - 1));
  }
  bool Dead(const Entry& entry) const {
    return pool_[SlotOf(entry.order)].order != entry.order;
  }
  // On the wheel, from the epoch on.
  static int64_t WheelSlotOf(int64_t when) { return when >> kWheelShift; }

  Entry Take(Instant when, Handler& handler, uint64_t arg, bool in_lane);
  void Put(const Entry& entry);
  void Release(uint32_t slot);
  void Run(const Entry& entry);
  void Fill();
  bool TurnWheel();
  void PopRoot();
  void PopLane();
  void SiftUp(size_t hole, Entry entry);
  void SiftDown(size_t hole, Entry entry);

  Instant now_{};
  std::vector<Entry> heap_;  // Up to wheel_at_'s slot, and that one too.
  // The slots after that one, up to the end of this turn.
  std::vector<std::vector<Entry>> wheel_{kWheelSlots};
  std::array<uint64_t, kWheelSlots / 64> occupied_{};  // A bit for each.
  int64_t wheel_at_ = 0;
  int64_t wheel_end_ = kWheelSlots;
  std::vector<Entry> beyond_;  // From wheel_end_ on.
  std::vector<Entry> lane_;    // Sorted from lane_head_ on.
  size_t lane_head_ = 0;
  std::vector<Event> pool_;
  uint32_t free_ = kNoSlot;
  uint64_t sequence_ = 1;
  uint64_t executed_ = 0;
  size_t pending_ = 0;
  static constexpr uint32_t kNoSlot = ~uint32_t{0};
};

}  // namespace weir::sim

#endif  // WEIR_SIM_EVENT_QUEUE_H_
