// The memory order of words that stand for themselves: nothing else is to be
// seen together with them.

#ifndef WEIR_CORE_RELAXED_H_
#define WEIR_CORE_RELAXED_H_

#include <atomic>
#include <cstdint>

#include "weir/shared.h"

namespace weir {

inline constexpr auto kRelaxed = std::memory_order_relaxed;

// Counts in a word that only this thread writes.
inline void Increment(std::atomic<uint64_t>& counter) {
  counter.store(counter.load(kRelaxed) + 1, kRelaxed);
}

inline void CountUp(Shared<int32_t>& count, int32_t by) {
  count.store(count.load(kRelaxed) + by, kRelaxed);
}

}  // namespace weir

#endif  // WEIR_CORE_RELAXED_H_
