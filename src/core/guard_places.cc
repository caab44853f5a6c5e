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

#include <bit>
#include <cmath>
#include <utility>

#include "relaxed.h"
#include "weir/guard.h"

namespace weir {
namespace {

// Most spare places that a worker keeps.  Chosen: enough to touch the shared
// lines once in sixteen requests.
constexpr int64_t kMostSpare = 16;
// Most places that lapse before the requests that held them come back, in
// limits.  Chosen: a dependency may hang for as many deadlines; what is at work
// after a standstill is bounded.
constexpr int64_t kMostLapsed = 8;
// How much longer than others a request may take before it is said to hang,
// while others are answered.  Chosen: of a line first come first served none is
// so much behind.
constexpr int64_t kSameLine = 4;
// How long a resource that asks no more is left a place.  Chosen: a request
// each second is one that still comes.
constexpr Duration kRowMemory = std::chrono::seconds(1);

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
  // Resources share the places also within one worker.
  if (2 * all > slots && (has_kinds_ || !IsAlone())) SetTight(true);
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

// A caller who left frees no place yet: the service goes on working for it.
// How much longer is not known; as long as a request of now takes on average,
// and without memory of when it began, is what there is to go by.
void Guard::Haunt(Instant now) {
  FadeGhosts(now);
  ghosts_ += 1;
  ++ghost_places_;
  FadeGhosts(now);
}

void Guard::FadeGhosts(Instant now) {
  const Instant before = std::exchange(ghosts_at_, now);
  if (ghost_places_ == 0) return;
  const double elapsed = ToSeconds(now - before);
  const double mean = stay_.mean();
  ghosts_ = mean > 0 ? ghosts_ * (mean / (mean + elapsed)) : 0;
  // Half of the places are for those whose callers are still there.
  const int64_t most = region_.published.slots.load(kRelaxed) / (2 * Members());
  ghosts_ = std::min(ghosts_, static_cast<double>(most));
  const auto left = static_cast<int64_t>(std::llround(ghosts_));
  if (left >= ghost_places_) return;
  region_.places.Add(static_cast<size_t>(shard_index_), left - ghost_places_);
  ghost_places_ = left;
}

// Which resources asked within the last second or two.
void Guard::NoteRow(uint16_t row, Instant now) {
  if (now - rows_since_ >= kRowMemory) {
    rows_since_ = now;
    rows_asked_ = rows_asking_;
    rows_asking_ = 0;
  }
  rows_asking_ |= uint64_t{1} << row;
}

// Requests of one resource that wait for somebody else, or for each other, must
// not hold the places of those that do not.  While others that are as critical
// wait, a resource has its share when it holds as many places as each of them
// could have; while none waits, when it leaves one place to each that asked
// lately.
bool Guard::HasItsShare(uint16_t row, size_t criticality) const {
  uint64_t waiting = 0;
  int64_t held = 0;
  region_.ForEachClaimed([&](size_t, const Region::Shard& shard) {
    held += shard.running[row].load(kRelaxed);
    for (size_t c = 0; c <= criticality; ++c) {
      waiting |= shard.waiting_rows[c].load(kRelaxed);
    }
  });
  const uint64_t others = ~(uint64_t{1} << row);
  const int64_t slots = region_.published.slots.load(kRelaxed);
  const int64_t rivals = std::popcount(waiting & others);
  const int64_t asked = std::popcount((rows_asking_ | rows_asked_) & others);
  if (slots - region_.places.sum() > std::max(rivals, asked)) return false;
  const int64_t sharing = 1 + (rivals > 0 ? rivals : asked);
  return held >= std::max<int64_t>(1, slots / sharing);
}

void Guard::GiveBackPlace(const Permit::Data& permit, bool lost, Instant now) {
  if (permit.in_row) CountUp(shard_.running[permit.row], -1);
  if (!due_places_.Remove(permit.due)) {
    --lapsed_;
    return;
  }
  if (lost) {
    Haunt(now);
  } else {
    Release();
  }
}

void Guard::LapseOverdue(Instant now) {
  FadeGhosts(now);
  const Duration stay = FromSeconds(stay_.mean());
  // Where answers come, those that are overdue may be in the same line.
  const bool silent = now - answered_at_ >= std::max(stay, policy_->deadline);
  const Duration grace =
      std::min((silent ? 1 : kSameLine) * stay, due_places_.longest());
  const int64_t slots = region_.published.slots.load(kRelaxed);
  const int64_t most = std::max<int64_t>(1, kMostLapsed * slots / Members());
  const int64_t lapsed = due_places_.Lapse(now - grace, most - lapsed_);
  if (lapsed == 0) return;
  lapsed_ += lapsed;
  region_.places.Add(static_cast<size_t>(shard_index_), -lapsed);
}

void Guard::ReturnFree() {
  if (free_ == 0) return;
  region_.places.Add(static_cast<size_t>(shard_index_), -free_);
  free_ = 0;
}

}  // namespace weir
