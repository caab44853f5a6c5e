// What moves through a simulated world: operations, and the visits they make.
//
// An operation is what a client wants.  Each attempt at it is a visit to the
// entry tier; a visit may make further visits to other tiers before it is
// answered.  All live in pools and are used again, so a run allocates only
// while more of them exist at once than ever before.

#ifndef WEIR_SIM_VISIT_H_
#define WEIR_SIM_VISIT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weir/client/client_call.h"
#include "weir/request.h"
#include "weir/scenario/arrivals.h"
#include "weir/scenario/scenario.h"
#include "weir/sim/event_queue.h"
#include "weir/sim/processor.h"
#include "weir/time.h"

namespace weir::sim {

inline constexpr size_t kMaxStages = 8;
inline constexpr size_t kMaxLayers = 5;
// What each stage takes of one visit; negative: it is not taken.
using Demand = std::array<Duration, kMaxStages>;

inline constexpr uint32_t kNone = ~uint32_t{0};

// How a visit ended, as its caller sees it.
enum class Reply : uint8_t {
  kOk,
  kShed,       // Refused by a gate.
  kError,      // Its replica was or went down, or something it asked failed.
  kCancelled,  // Dropped at its deadline.
};

struct Visit : Work {
  enum class State : uint8_t {
    kTravelling,  // To the replica, or its answer back.
    kWaiting,     // In the gate.
    kRunning,     // In a stage.
    kCalling,     // For answers of other tiers.
    kRefusing,    // The refusal itself takes cpu time.
  };

  uint32_t index = 0;  // Its own, in the pool.
  uint32_t next_free = kNone;
  // None: it was answered in its place, and only its work goes on.
  uint32_t operation = kNone;
  uint32_t parent = kNone;  // The visit that made this one.
  uint32_t attempt = 0;     // Of its operation.
  uint16_t tier = 0;
  uint16_t cls = 0;
  uint16_t replica = 0;
  State state = State::kTravelling;
  Reply reply = Reply::kOk;
  uint8_t stage = 0;       // Running: which one.
  uint8_t call = 0;        // Calling: which one,
  int32_t calls_left = 0;  // how often it is still to be made,
  int32_t calls_open = 0;  // and how many are not answered yet.
  bool counted = false;    // Its gate admitted it and waits for its end.
  bool turned = false;     // It has had its first worker.
  bool abandoned = false;  // Its caller has gone.
  // Why it fails, if it does.
  const scenario::Failure* failure = nullptr;
  uint64_t number = 0;  // What its service times are drawn from.
  Request request;
  Instant sent{};
  Duration retry_after{};    // With Reply::kShed.
  bool never_retry = false;  // Its answer says that nobody need try again.
  std::optional<OverloadLevel> level{};  // What its answer tells of the tier.
  weir::Attempt ticket{};    // Of its caller's client guard, if there is one.
  ClientCall client_call{};  // Of a visit made by another, under such a guard.
  uint32_t slot = kNone;     // Of its gate, while that knows of it.
  Instant started{};         // When its gate let it run.
  int32_t inflight_before = 0;  // Of its gate, then.
  Duration spent{};             // Service time it has taken, io not counted.
  Timer timer;                  // Of an io stage or of its journey.
  Timer deadline_timer;
  Timer proxy_timer;
  // Of those that wait in a gate's own queue.
  Visit* next_waiting = nullptr;
  Visit* previous_waiting = nullptr;
  // Of all visits at its replica.
  Visit* next_here = nullptr;
  Visit* previous_here = nullptr;
};

// What each attempt looks at comes first, within two cache lines.
struct alignas(64) Operation {
  scenario::Arrival arrival;
  uint32_t index = 0;
  uint32_t next_free = kNone;
  uint32_t attempts = 0;
  uint32_t open = 0;      // Attempts that are not answered yet.
  bool answered = false;  // In time: nothing more is asked for it.
  bool given_up = false;  // No further attempt follows.
  bool late = false;      // Some attempt was answered, but too late.
  bool refused = false;   // The last attempt to fail was refused.
  bool ended = false;     // How it ended is counted.
  bool used = false;      // In the world, not in the pool.
  // Visits whose answers are waited for: the newest attempt, and one more
  // when that is a hedge.
  std::array<uint32_t, 2> live = {kNone, kNone};
  std::array<uint8_t, kMaxLayers> retries{};  // Made so far, by layer.
  Instant started{};
  Duration work{};  // Of its first attempt, all tiers; io not counted.
  Timer timer;      // Timeout of the newest attempt, or the next retry.
  Timer hedge;
  Demand demand{};    // Of its first attempt at the entry tier.
  ClientCall call{};  // Under a client guard.
};

// Objects at stable addresses, named by small numbers.
template <typename T>
class Pool {
 public:
  T& Take() {
    if (free_ == kNone) Grow();
    T& item = (*this)[free_];
    free_ = item.next_free;
    ++used_;
    return item;
  }
  void Return(T& item) {
    item.next_free = free_;
    free_ = item.index;
    --used_;
  }
  T& operator[](uint32_t index) {
    return chunks_[index / kChunk][index % kChunk];
  }
  size_t used() const { return used_; }

  // All of them, in use or not.
  template <typename Visitor>
  void ForEach(Visitor visitor) {
    for (auto& chunk : chunks_) {
      for (uint32_t i = 0; i < kChunk; ++i) visitor(chunk[i]);
    }
  }

 private:
  static constexpr uint32_t kChunk = 256;

  void Grow() {
    const auto base = static_cast<uint32_t>(chunks_.size()) * kChunk;
    chunks_.push_back(std::make_unique<T[]>(kChunk));
    for (uint32_t i = kChunk; i-- > 0;) {
      T& item = chunks_.back()[i];
      item.index = base + i;
      item.next_free = free_;
      free_ = base + i;
    }
  }

  std::vector<std::unique_ptr<T[]>> chunks_;
  uint32_t free_ = kNone;
  size_t used_ = 0;
};

}  // namespace weir::sim

#endif  // WEIR_SIM_VISIT_H_
