// BrpcWindow: how brpc's two adaptive limiters sample latency.
//
// At most one answer per 100 us is sampled.  A window starts with its first
// sample and ends when it is old enough and has enough samples, or when it is
// full; one that grows old without enough samples is thrown away.  A failed
// request's time is charged to the successful ones:
//
//   average = ceil((failed time * punishment + time of successes) / successes)
//
// Source: [BRPC] auto_concurrency_limiter.cpp and
// timeout_concurrency_limiter.cpp, their flags' defaults.

#ifndef WEIR_RIVALS_BRPC_WINDOW_H_
#define WEIR_RIVALS_BRPC_WINDOW_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class BrpcWindow {
 public:
  struct Config {
    Duration length = std::chrono::seconds(1);
    int32_t least_samples = 100;
    int32_t most_samples = 200;
    Duration sampling_interval = std::chrono::microseconds(100);
    double failure_punishment = 1.0;
    // Failed share up to which failures are not charged at all, and above
    // which they are charged from 0 rising; 0 charges all of them.
    double tolerated_failures = 0.0;
  };
  // What a window that ended comes to.
  struct Summary {
    int32_t succeeded = 0;
    int32_t failed = 0;
    int64_t average_us = 0;  // 0 when nothing succeeded.
    double qps = 0;          // All successes, sampled or not.
  };

  explicit BrpcWindow(const Config& config) : config_(config) {}

  // False for an answer that comes too soon after the last sample.  Counts it
  // for qps in any case.
  bool Sampled(const Finish& finish);
  // Adds a sample; something when that ends the window.
  std::optional<Summary> Add(const Finish& finish);
  void Reset(Instant now);

  int32_t succeeded() const { return succeeded_; }
  int32_t failed() const { return failed_; }

 private:
  Summary Summarize(Instant now) const;

  Config config_;
  std::optional<Instant> last_sample_;
  std::optional<Instant> start_;
  int32_t succeeded_ = 0;
  int32_t failed_ = 0;
  int64_t succeeded_us_ = 0;
  int64_t failed_us_ = 0;
  int64_t total_succeeded_ = 0;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_BRPC_WINDOW_H_
