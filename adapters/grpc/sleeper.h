// Sleeper: how a thread sleeps until something is due, and is woken when
// something becomes due earlier than it thought.

#ifndef WEIR_GRPC_SLEEPER_H_
#define WEIR_GRPC_SLEEPER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "weir/time.h"

namespace weir::grpc {

class Sleeper {
 public:
  // For the one thread that sleeps: until `due()`, on the timeline of
  // host::MonotonicClock, or somewhat shorter.  False: it is to end.
  //
  // due() is read before it is said until when the thread sleeps, and both are
  // in one order with what others write and then read in WakeFor(): one of the
  // two sees the other.
  template <typename Due>
  bool Sleep(Due due) {
    std::unique_lock lock(mutex_);
    if (ended_) return false;
    until_.store(kNever);
    const Instant next = due();
    until_.store(next);
    awake_.wait_until(
        lock, std::chrono::steady_clock::time_point(next.time_since_epoch()));
    return true;
  }

  // Something is due at `due`; what due() reads has been written before.
  // Any thread.
  void WakeFor(Instant due) {
    if (due >= until_.load()) return;
    { const std::lock_guard lock(mutex_); }
    awake_.notify_one();
  }

  void End() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    awake_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable awake_;
  bool ended_ = false;
  std::atomic<Instant> until_{kNever};
};

}  // namespace weir::grpc

#endif  // WEIR_GRPC_SLEEPER_H_
