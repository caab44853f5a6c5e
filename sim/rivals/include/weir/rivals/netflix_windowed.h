// NetflixWindowed: feeds another limit one aggregated sample per window.
//
// A window ends with the first sample that finishes after its end; the next
// one lasts clamp(2 * least latency, min, max).  A window with fewer than ten
// samples teaches nothing and is thrown away.  The sample it hands on has the
// mean latency, the largest inflight and whether any request was dropped.
//
// Source: [NETFLIX-CL] WindowedLimit with AverageSampleWindow, its defaults.
// Deviations: none known.  The port in Go [GO-CL] differs: there a window is
// ready when the last *inflight* exceeds the window size, a slip.

#ifndef WEIR_RIVALS_NETFLIX_WINDOWED_H_
#define WEIR_RIVALS_NETFLIX_WINDOWED_H_

#include <chrono>
#include <cstdint>
#include <utility>

#include "weir/rivals/rival.h"
#include "weir/time.h"

namespace weir::rivals {

// What a window of samples comes to; dropped ones count like the others.
class AverageSampleWindow {
 public:
  void Add(Duration latency, int32_t inflight, bool dropped);

  Duration mean() const { return count_ == 0 ? Duration() : sum_ / count_; }
  Duration least() const { return least_; }
  int32_t largest_inflight() const { return largest_inflight_; }
  int64_t count() const { return count_; }
  bool dropped() const { return dropped_; }

 private:
  Duration sum_{};
  Duration least_ = Duration::max();
  int32_t largest_inflight_ = 0;
  int64_t count_ = 0;
  bool dropped_ = false;
};

class NetflixWindowed final : public Limiter, public Learner {
 public:
  struct Config {
    Duration window_floor = std::chrono::seconds(1);
    Duration window_ceiling = std::chrono::seconds(1);
    int64_t least_samples = 10;
    // Faster answers are not looked at.
    Duration least_latency = std::chrono::microseconds(100);
  };

  NetflixWindowed(const Config& config, Rival inner)
      : config_(config), inner_(std::move(inner)) {}

  int32_t Limit(Instant now) override { return inner_.Limit(now); }
  void Learn(const Finish& finish) override;

 private:
  Config config_;
  Rival inner_;
  AverageSampleWindow window_;
  Instant ends_at_{};
};

}  // namespace weir::rivals

#endif  // WEIR_RIVALS_NETFLIX_WINDOWED_H_
