// The requests of one worker that wait for room, in the order of the law.
//
//   next to run    oldest of the most critical class present; while demand
//                  exceeds capacity, in the least critical class present that
//                  of the lowest rank
//   next to leave  in the least critical class present, the oldest of the
//                  highest rank
//   next to expire the one with the earliest expiry
//
// Intrusive: waiters bring their own links, so nothing allocates.  Push,
// remove and the first two questions are O(1); the expiry heap (a pairing
// heap) is O(log n) amortised.
//
// Source: class order and push-out: docs/algorithms/law.md.  Pairing heap:
// [PAIRING].

#ifndef WEIR_QUEUE_WAITING_QUEUE_H_
#define WEIR_QUEUE_WAITING_QUEUE_H_

#include <array>
#include <cstdint>

#include "weir/policy.h"
#include "weir/request.h"
#include "weir/shed/fair_usage.h"
#include "weir/time.h"
#include "weir/waiter.h"

namespace weir {

// Who of a class goes first, from 0 on: clients by what they used, and of those
// that used as much, retries after first attempts.
constexpr uint8_t Rank(uint8_t usage, bool retry) {
  return static_cast<uint8_t>(2 * usage + (retry ? 1 : 0));
}
constexpr uint8_t UsageOf(uint8_t rank) { return rank / 2; }

// Not thread-safe.
class WaitingQueue {
 public:
  bool empty() const { return size_ == 0; }
  int64_t size() const { return size_; }
  int64_t size(Criticality c) const { return classes_[Index(c)].size; }

  // The most, and the least, critical class present.  Undefined when empty.
  Criticality MostCritical() const;
  Criticality LeastCritical() const;

  void Push(Waiter& waiter);
  void Remove(Waiter& waiter);

  // Null when empty, or when all of the most critical class are of `blocked`
  // rows (a bit each): of the others the oldest goes before any that is.
  Waiter* NextToRun(bool overloaded, uint64_t blocked = 0) const;
  // The rows, a bit each, of those of class `c` that wait.
  uint64_t rows(size_t c) const { return classes_[c].used_rows; }
  Waiter* NextToLeave() const;
  // The one after `waiter`, or the first for null; all of them, in no
  // particular order.
  Waiter* Next(const Waiter* waiter) const;
  // Null when none expires.
  Waiter* NextToExpire() const { return heap_; }

 private:
  static constexpr size_t kRanks = Rank(FairUsage::kMaxLevel, true) + 1;
  struct List {
    Waiter* first = nullptr;
    Waiter* last = nullptr;
  };
  struct Class {
    List all;
    std::array<List, kRanks> by_rank;
    std::array<List, kMaxResources> by_row;
    uint64_t used_ranks = 0;  // Bit i: by_rank[i] is not empty.
    uint64_t used_rows = 0;   // The same of by_row.
    int64_t size = 0;
  };

  static void Append(List& list, Waiter& waiter, Waiter::Link Waiter::*link);
  static void Take(List& list, Waiter& waiter, Waiter::Link Waiter::*link);
  static Waiter* Meld(Waiter* a, Waiter* b);
  static Waiter* MeldChildren(Waiter* first);
  void HeapRemove(Waiter& waiter);

  std::array<Class, kCriticalities> classes_;
  Waiter* heap_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace weir

#endif  // WEIR_QUEUE_WAITING_QUEUE_H_
