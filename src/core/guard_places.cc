// Guard: places under the limit.
//
// How many are held is a ledger (ledger.h): one word that all workers exchange,
// so the sum never passes the limit, and of any number that race for the last
// place exactly one gets it.  Each worker's part is its account there, so what
// a dead one held is known and comes back.
//
// While more than half of the places are free, a worker takes a few at once
// and keeps them, so that most decisions touch no line that another core
// writes.  `tight` ends that: set by whoever finds places scarce, it makes
// everybody give spare places back at the next event.
//
// `tight` must be set while anybody waits, else arrivals pass those that wait
// and spare places stay where they are.  So who clears it looks once more
// whether somebody waits; and who waits sets it again with each tick, since the
// one who cleared it may have died before his second look.

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
  if (Tight() == tight) return;
  region_.flags.tight.store(tight);
  if (tight) return;
  for (const Ledger& queued : region_.queued) {
    if (queued.sum() > 0) return region_.flags.tight.store(true);
  }
}

int64_t Guard::Members() const {
  const uint64_t version =
      region_.header.members.load(std::memory_order_acquire);
  if (version != members_version_) {
    members_version_ = version;
    members_ = 0;
    for (const auto& word : region_.header.claimed) {
      members_ += std::popcount(word.load(kRelaxed));
    }
  }
  return members_;
}

bool Guard::IsAlone() const { return Members() == 1; }

bool Guard::Acquire() {
  if (free_ > 0) {
    --free_;
    return true;
  }
  return AcquireShared();
}

bool Guard::AcquireShared() {
  const int64_t slots = region_.published.slots.load(kRelaxed);
  const int64_t all = region_.places.sum() + 1;
  int64_t spare = 0;
  if (2 * all <= slots && !Tight()) {
    // All workers together take half of what is free at most.
    spare = std::min(kMostSpare, (slots - all) / (2 * Members()));
  }
  const auto account = static_cast<size_t>(shard_index_);
  if (spare > 0 && region_.places.Add(account, 1 + spare, slots)) {
    free_ = spare;
    return true;
  }
  if (!region_.places.Add(account, 1, slots)) {
    SetTight(true);
    return false;
  }
  if (2 * all > slots && !IsAlone()) SetTight(true);
  return true;
}

// For requests that run although there is no room: shadow mode.
void Guard::AcquireAnyway() {
  region_.places.Add(static_cast<size_t>(shard_index_), 1);
}

void Guard::Release() {
  ++free_;
  // Who is alone does not set `tight`, but may not be alone for long.
  if (Tight() || free_ > kMostSpare ||
      2 * region_.places.sum() > region_.published.slots.load(kRelaxed)) {
    ReturnFree();
  }
}

void Guard::ReturnFree() {
  if (free_ == 0) return;
  region_.places.Add(static_cast<size_t>(shard_index_), -free_);
  free_ = 0;
}

}  // namespace weir
