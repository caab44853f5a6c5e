// Shared: a word that several processes may read and write at a time.
//
// It is std::atomic.  Only where the core is compiled for the schedule explorer
// (src/core/explore/) it is a word at which the explorer may let another thread
// go on, hold a store back, or end a process.

#ifndef WEIR_SHARED_H_
#define WEIR_SHARED_H_

#ifdef WEIR_EXPLORE
#include "explore/word.h"
#else
#include <atomic>
#endif

namespace weir {

#ifdef WEIR_EXPLORE
template <typename T>
using Shared = explore::Word<T>;
#else
template <typename T>
using Shared = std::atomic<T>;
#endif

}  // namespace weir

#endif  // WEIR_SHARED_H_
