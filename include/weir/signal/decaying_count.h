// DecayingCount: how much of something there was of late, in one word.
//
// A count that fades with a memory of one second: after a time t without
// anything new, 1 / (1 + t / 1 s) of it is left.  So a steady rate of r a
// second shows as about r.
//
// Source: the decay needs no exp() and tends to it for small steps.
//
// Threads and processes: any.  Updates that race can lose one another, which
// forgets one or two of many; nothing else can go wrong.

#ifndef WEIR_SIGNAL_DECAYING_COUNT_H_
#define WEIR_SIGNAL_DECAYING_COUNT_H_

#include <atomic>
#include <bit>
#include <cstdint>

#include "weir/time.h"

namespace weir {

class DecayingCount {
 public:
  static constexpr Duration kMemory = std::chrono::seconds(1);

  void Add(double amount, Instant now) {
    const auto count = static_cast<float>(Get(now) + amount);
    word_.store(
        uint64_t{std::bit_cast<uint32_t>(count)} << 32 | Milliseconds(now),
        std::memory_order_relaxed);
  }

  double Get(Instant now) const {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    const float count = std::bit_cast<float>(static_cast<uint32_t>(word >> 32));
    const auto passed =
        static_cast<int32_t>(Milliseconds(now) - static_cast<uint32_t>(word));
    // Another worker's clock reading may be a little ahead of ours.
    if (passed <= 0) return count;
    constexpr auto kMemoryMs = static_cast<float>(kMemory.count() / 1'000'000);
    return count * (kMemoryMs / (kMemoryMs + static_cast<float>(passed)));
  }

 private:
  static constexpr uint32_t Milliseconds(Instant now) {
    return static_cast<uint32_t>(now.time_since_epoch().count() / 1'000'000);
  }

  // High half: count as a float; low half: when, in ms modulo 2^32.
  std::atomic<uint64_t> word_{0};
};

}  // namespace weir

#endif  // WEIR_SIGNAL_DECAYING_COUNT_H_
