// Processor is anything that work queues for: the cores of a server, a lock, a
// pool of connections.
//
// Fcfs: up to `workers` pieces of work at once, the others wait in order.
// Sharing: all at once, each at min(1, workers / n) of full speed.
//
// Work is measured on a virtual clock that runs as fast as each piece in
// service does, so a change of speed, or of the number that share, moves one
// timer and not one for each piece.  The clock counts 2^-16 ns in an integer;
// rounding costs less than a nanosecond per change and never accumulates in a
// piece of work.

#ifndef WEIR_SIM_PROCESSOR_H_
#define WEIR_SIM_PROCESSOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weir/sim/event_queue.h"
#include "weir/time.h"

namespace weir::sim {

// A piece of work, kept inside its owner's own context.  Not copied while it
// waits or is served.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Whether it waits for a worker, or has one.
  bool waiting() const { return state_ == State::kWaiting; }
  bool in_service() const { return state_ == State::kInService; }
  // What it was last added with.
  Duration demand() const { return demand_; }

 private:
  friend class Processor;
  enum class State : uint8_t { kIdle, kWaiting, kInService };

  Duration demand_{};
  Instant since_{};     // Of waiting, then of service.
  int64_t finish_ = 0;  // On the virtual clock.
  uint64_t order_ = 0;  // Among equal finishes.
  size_t heap_index_ = 0;
  Work* next_ = nullptr;
  Work* previous_ = nullptr;
  State state_ = State::kIdle;
  bool urgent_ = false;
};

class Processor final : private Handler {
 public:
  enum class Discipline : uint8_t { kFcfs, kSharing };

  class Owner {
   public:
    // `work` is done; it belongs to its owner again.
    virtual void OnWorkDone(Work& work, Instant now) = 0;

    // `work` came at `since` and is about to get a worker.  False: the
    // processor forgets it instead; the owner has it back.
    virtual bool OnWorkTurn(Work& work, Instant since, Instant now) = 0;

   protected:
    ~Owner() = default;
  };

  // Both must outlive it.
  Processor(EventQueue& events, Owner& owner, Discipline discipline,
            int32_t workers);

  // Adds idle work of `demand` >= 0 at full speed.  `urgent` work waits before
  // all other (Fcfs only).
  void Add(Work& work, Duration demand, bool urgent = false);

  // Forgets work wherever it is; nothing if it is idle.  Returns the service
  // that it has had.
  Duration Remove(Work& work);

  // From now on.  Work in service is finished though workers become fewer.
  // workers >= 0.
  void SetWorkers(int32_t workers);
  // Multiplies full speed; 0 stands still.  [0, 1000].
  void SetSpeed(double speed);

  size_t waiting() const { return waiting_count_; }
  // How long the first in line has waited.
  Duration head_delay() const {
    return line_.first == nullptr ? Duration{}
                                  : events_.now() - line_.first->since_;
  }
  size_t in_service() const { return heap_.size(); }
  int32_t workers() const { return workers_; }

  // Worker-time spent until now, for utilization: the integral of busy
  // workers, whether they stand still or not.
  Duration busy() const;

 private:
  // Of waiting work, linked through it.
  struct Line {
    Work* first = nullptr;
    Work* last = nullptr;
  };
  static constexpr int kFraction = 16;  // Bits of the clock below 1 ns.

  void OnEvent(Instant now, uint64_t arg) override;
  void Advance();
  void Start(Work& work);
  void StartWaiting();
  void Reschedule();
  int64_t BusyWorkers() const;
  Line& LineOf(const Work& work) { return work.urgent_ ? urgent_ : line_; }
  void Unlink(Work& work);
  static bool Before(const Work& a, const Work& b);
  void Place(size_t index, Work& work);
  void SiftUp(size_t index);
  void SiftDown(size_t index);
  void HeapErase(size_t index);

  EventQueue& events_;
  Owner& owner_;
  const Discipline discipline_;
  int32_t workers_;
  int64_t speed_ = int64_t{1} << kFraction;

  std::vector<Work*> heap_;  // In service, earliest finish first.
  Line urgent_;
  Line line_;
  size_t waiting_count_ = 0;

  int64_t clock_ = 0;  // Virtual; 0 whenever nothing is in service.
  Instant clock_at_{};
  uint64_t order_ = 0;
  Duration busy_{};
  Timer timer_;
  Instant timer_at_{};
};

}  // namespace weir::sim

#endif  // WEIR_SIM_PROCESSOR_H_
