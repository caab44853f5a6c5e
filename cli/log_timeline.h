// What a log says about time: arrivals and requests in progress, in bins.

#ifndef WEIR_CLI_LOG_TIMELINE_H_
#define WEIR_CLI_LOG_TIMELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "weir/request.h"
#include "weir/time.h"

namespace weir::cli {

using ClassCounts = std::array<uint64_t, kCriticalities>;

// A stretch of time in which requests came at one rate.
struct RateStep {
  Duration from{};  // Since 1970.
  Duration length{};
  ClassCounts counts{};

  uint64_t count() const;
};

// Counts in bins whose width doubles whenever there would be too many of them:
// memory does not grow with the log (6 MiB at most), and requests may come in
// any order.
class LogTimeline {
 public:
  // `finest`: width of a bin to begin with.
  explicit LogTimeline(Duration finest) : finest_(finest), width_(finest) {}

  void AddArrival(Duration at, Criticality criticality);
  // A request that was in progress in between, for concurrency().
  void AddWork(Duration from, Duration to);

  bool empty() const { return first_ > last_; }
  // First arrival, and the end of the last one's smallest unit; in whole units.
  Duration begin() const;
  Duration end() const;
  Duration width() const { return width_; }

  // The arrivals as at most `most` steps (>= 1).  Bins become one step while
  // the difference of their rates may be chance; beyond `most`, those that
  // differ least.  No request is lost: a step's rate is its count by its
  // length.
  std::vector<RateStep> Steps(size_t most) const;
  // Variance of the counts in bins around the steps, over their mean: 1 for
  // Poisson, 0 for arrivals at equal distances, above 1 for bursts shorter
  // than a step.
  double Dispersion(const std::vector<RateStep>& steps) const;

  // Of the time in windows of one second or a bin, whichever is longer.
  struct Window {
    Duration at{};
    Duration length{};
    double concurrency = 0;   // Requests in progress, on average.
    uint64_t finished = 0;    // Those whose time is known, by their start.
    double mean_seconds = 0;  // Of those.
  };
  std::vector<Window> Windows() const;

 private:
  struct Bin {
    std::array<uint32_t, kCriticalities> arrivals{};
    uint32_t starts = 0;
    uint32_t ends = 0;
    // Sums of the distance from the start of the bin to those instants.
    int64_t starts_after_ns = 0;
    int64_t ends_after_ns = 0;
    double seconds = 0;  // Of those that started here.
  };
  // Chosen: a day in bins of 1.6 s or better.
  static constexpr int64_t kMostBins = 65'536;

  Bin& At(Duration at);
  void Coarsen();
  // What of a bin lies between begin() and end().
  RateStep Clip(size_t bin) const;

  Duration finest_;
  Duration width_;
  int64_t base_ = 0;  // bins_[0] begins at base_ * width_.
  std::deque<Bin> bins_;
  Duration first_ = Duration::max();
  Duration last_ = Duration::min();
};

}  // namespace weir::cli

#endif  // WEIR_CLI_LOG_TIMELINE_H_
