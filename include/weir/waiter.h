// The place of a request that waits, kept inside its caller's own context.

#ifndef WEIR_WAITER_H_
#define WEIR_WAITER_H_

#include <cstdint>
#include <utility>

#include "weir/decision.h"
#include "weir/permit.h"
#include "weir/request.h"

namespace weir {

// Embed one in (or derive) the context of a request; the guard links it into
// its queue, so that waiting allocates nothing.  Not copied, not moved.  When
// it is destroyed while it waits, the request leaves the queue as cancelled.
// Must not outlive its guard.  Belongs to the guard's thread.
class Waiter {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter();

  bool waiting() const { return state_ == State::kWaiting; }
  const Request& request() const { return request_; }

  // Valid after Guard::NextDecided() returned this.
  const Decision& decision() const { return decision_; }
  // The permit that came with an admitting decision; empty the second time.
  Permit TakePermit() { return std::move(permit_); }

 private:
  friend class Guard;
  friend class WaitingQueue;
  enum class State : uint8_t { kIdle, kWaiting, kDecided };

  struct Link {
    Waiter* next = nullptr;
    Waiter* previous = nullptr;
  };

  Request request_;
  Instant expiry_ = kNever;  // When it leaves the queue unserved.
  Decision decision_;
  Permit permit_;
  Guard* guard_ = nullptr;
  Link by_class_;  // All of its class, oldest first; later: the decided ones.
  Link by_rank_;   // Those of its class with its rank.
  Link by_row_;    // Those of its class and resource, oldest first.
  // Expiry heap (pairing heap): first child, next sibling, and the left
  // neighbour, which is the parent for a first child.
  Waiter* child_ = nullptr;
  Waiter* sibling_ = nullptr;
  Waiter* left_ = nullptr;
  Taken taken_;
  uint16_t row_ = 0;  // Of its resource in the region.
  uint8_t rank_ = 0;  // Rank() of when it arrived.
  State state_ = State::kIdle;
};

}  // namespace weir

#endif  // WEIR_WAITER_H_
