// BrpcTimeout: brpc's "timeout" limiter: no new work while the average answer
// takes longer than the caller would wait.
//
//   admit when nothing else runs, or
//         inflight (with this one) <= 100 and average latency < timeout
//
// A window without a success doubles the average.  It fails closed: with one
// request at a time, a window seldom gets the 100 samples that would replace a
// bad average.
//
// Source: [BRPC] timeout_concurrency_limiter.cpp, its flags' defaults.
// Deviations: one timeout for all requests instead of each caller's own.

#ifndef WEIR_RIVALS_BRPC_TIMEOUT_H_
#define WEIR_RIVALS_BRPC_TIMEOUT_H_

#include <chrono>
#include <cstdint>

#include "weir/rivals/brpc_window.h"
#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

class BrpcTimeout final : public Gate, public Learner {
 public:
  struct Config {
    BrpcWindow::Config window{};
    Duration timeout = std::chrono::milliseconds(500);
    int32_t ceiling = 100;
    Duration initial_average = std::chrono::microseconds(500);
  };

  explicit BrpcTimeout(const Config& config);

  bool Admit(const Arrival& arrival) override;
  void Learn(const Finish& finish) override;

  Duration average() const { return average_; }
  const BrpcWindow& window() const { return window_; }
  void ResetWindow(Instant now) { window_.Reset(now); }

 private:
  Config config_;
  BrpcWindow window_;
  Duration average_;
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_BRPC_TIMEOUT_H_
