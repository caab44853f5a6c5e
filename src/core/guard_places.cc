// Guard: places under the limit.
//
// Each shard says how many places it holds; their sum must not pass the limit.
// A worker that wants one first adds it to its own number and then sums up: of
// two that race for the last place at least one sees both and steps back, so
// the sum is never too large (both may step back; then they wait for a tick).
// Nothing but the shards holds the sum, so a dead worker's part cannot leak.
//
// While more than half of the places are free, a worker takes a few at once
// and keeps them, so that most decisions touch no line that another core
// writes.  `tight` ends that: set by whoever finds places scarce, it makes
// everybody give spare places back at the next event.

#include "relaxed.h"
#include "weir/guard.h"

namespace weir {
namespace {

// Most spare places that a worker keeps.  Chosen: enough to touch the shared
// lines once in sixteen requests.
constexpr int64_t kMostSpare = 16;

}  // namespace

bool Guard::Tight() const { return region_.flags.tight.load(kRelaxed) != 0; }

void Guard::SetTight(bool tight) {
  if (Tight() != tight) region_.flags.tight.store(tight, kRelaxed);
}

bool Guard::IsAlone() const {
  return region_.header.shards_used.load(kRelaxed) == 1;
}

bool Guard::Acquire() {
  if (free_ > 0) {
    --free_;
    return true;
  }
  if (!IsAlone()) return AcquireShared();
  const int64_t held = shard_.held.load(kRelaxed);
  if (held >= region_.published.slots.load(kRelaxed)) {
    SetTight(true);
    return false;
  }
  shard_.held.store(held + 1, kRelaxed);
  return true;
}

bool Guard::AcquireShared() {
  const int64_t held = shard_.held.load(kRelaxed);
  shard_.held.store(held + 1);  // Sequentially consistent, as are the reads.
  const int32_t shards = region_.header.shards_used.load(kRelaxed);
  int64_t all = 0;
  for (int32_t i = 0; i < shards; ++i) {
    all += region_.shards[static_cast<size_t>(i)].held.load();
  }
  const int64_t slots = region_.published.slots.load(kRelaxed);
  if (all > slots) {
    shard_.held.store(held);
    SetTight(true);
    return false;
  }
  if (2 * all > slots) {
    SetTight(true);
  } else if (!Tight()) {
    // All workers together take half of what is free at most.
    const int64_t spare = std::min(kMostSpare, (slots - all) / (2 * shards));
    shard_.held.store(held + 1 + spare);
    free_ = spare;
  }
  return true;
}

// For requests that run although there is no room: shadow mode.
void Guard::AcquireAnyway() {
  shard_.held.store(shard_.held.load(kRelaxed) + 1);
}

void Guard::Release() {
  if (IsAlone()) {
    shard_.held.store(shard_.held.load(kRelaxed) - 1, kRelaxed);
    return;
  }
  ++free_;
  if (Tight() || free_ > kMostSpare) ReturnFree();
}

void Guard::ReturnFree() {
  if (free_ == 0) return;
  shard_.held.store(shard_.held.load(kRelaxed) - free_);
  free_ = 0;
}

}  // namespace weir
