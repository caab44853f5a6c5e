// A latency histogram with one writer and any number of readers.
//
// Log-linear: 16 steps to each doubling, so a value read back is at most
// 1/32 = 3.1 % off (the middle of its step).  Covers 1 us to 2^27 us = 134 s;
// shorter and longer values count in the first and last step.

#ifndef WEIR_SIGNAL_HISTOGRAM_H_
#define WEIR_SIGNAL_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "weir/time.h"

namespace weir {

class Histogram {
 public:
  static constexpr int kStepBits = 4;
  static constexpr size_t kSteps = (27 - kStepBits + 1) << kStepBits;
  using Counts = std::array<uint64_t, kSteps>;

  // One thread at a time.  Readers see each count whole.
  void Record(Duration value) {
    std::atomic<uint64_t>& count = counts_[Step(value)];
    count.store(count.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);
  }

  void AddTo(Counts& sums) const {
    for (size_t i = 0; i < kSteps; ++i) {
      sums[i] += counts_[i].load(std::memory_order_relaxed);
    }
  }

  static size_t Step(Duration value) {
    const int64_t us = value.count() / 1000;
    if (us < (1 << kStepBits)) return us < 0 ? 0 : static_cast<size_t>(us);
    const int doublings =
        std::bit_width(static_cast<uint64_t>(us)) - 1 - kStepBits;
    const size_t step = (static_cast<size_t>(doublings) << kStepBits) +
                        static_cast<size_t>(us >> doublings);
    return step < kSteps ? step : kSteps - 1;
  }

  // The middle of a step.
  static Duration Value(size_t step) {
    if (step < (1U << kStepBits)) {
      return Duration(static_cast<int64_t>(step) * 1000 + 500);
    }
    const size_t doublings = (step >> kStepBits) - 1;
    const int64_t low = static_cast<int64_t>((step & ((1U << kStepBits) - 1)) +
                                             (1U << kStepBits))
                        << doublings;
    return Duration((low * 2 + (int64_t{1} << doublings)) * 500);
  }

  // The value below which `share` in [0, 1] of the counted ones lie; zero when
  // nothing was counted.
  static Duration Quantile(const Counts& counts, double share);

 private:
  std::array<std::atomic<uint64_t>, kSteps> counts_{};
};

}  // namespace weir

#endif  // WEIR_SIGNAL_HISTOGRAM_H_
