// The memory order of words that stand for themselves: nothing else is to be
// seen together with them.

#ifndef WEIR_CORE_RELAXED_H_
#define WEIR_CORE_RELAXED_H_

#include <atomic>

namespace weir {

inline constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace weir

#endif  // WEIR_CORE_RELAXED_H_
