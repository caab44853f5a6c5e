// Guard: what waits, and who goes next.

#include <cassert>
#include <utility>

#include "relaxed.h"
#include "weir/capacity_look.h"
#include "weir/guard.h"

namespace weir {
namespace {

// How often a worker with waiting requests looks at the other workers.
// Chosen: half of the 2 ms within which they shall catch up with each other.
constexpr Duration kTick = std::chrono::milliseconds(1);
// How often one that only keeps spare places, or is alone, does.  Chosen: they
// are half of what was free at most, so this need not be quick.
constexpr Duration kSpareTick = std::chrono::milliseconds(10);
// And how often while it is alone: for one who may join.
constexpr Duration kLoneSpareTick = std::chrono::milliseconds(100);
// How long free places are left to requests that wait in another worker, before
// it must be taken for stuck as long as nothing moves there.  Chosen: three
// ticks.
constexpr Duration kYield = 3 * kTick;
// A rank that no other is above.
constexpr uint8_t kAnyRank = 255;

}  // namespace

Admission Guard::Wait(const Request& request, Waiter& waiter, uint8_t rank,
                      const Taken& taken, bool forms_queue, Instant now) {
  assert(waiter.state_ == Waiter::State::kIdle &&
         "a waiter waits for one request at a time");
  waiter.request_ = request;
  waiter.taken_ = taken;
  waiter.rank_ = rank;
  waiter.row_ = rows_[request.resource];
  waiter.expiry_ =
      Enforces(request, Stage::kDeadline) ? request.deadline : kNever;
  waiter.guard_ = this;
  waiter.state_ = Waiter::State::kWaiting;
  queue_.Push(waiter);
  PublishQueue();
  SetTight(true);
  if (forms_queue) {
    const uint64_t round = region_.published.round.load(kRelaxed);
    if (region_.flags.unbound_round.load(kRelaxed) == round) {
      StepLaw(now, /*queue_formed=*/true);
    }
  }
  Pump(now);
  if (waiter.state_ == Waiter::State::kDecided) {
    TakeDecided(waiter);
    return {waiter.decision_, waiter.TakePermit()};
  }
  Count(ClassCounter::waited_total, request.criticality);
  return {{Verdict::kQueue, Reason::kQueued, {}}, {}};
}

// Pushes out what must leave before `request` may wait; false when it is the
// request itself.  Less critical requests of other workers, and as critical
// ones of a higher rank, are left to their next tick, and the bound is exceeded
// until then.
bool Guard::MakeRoom(const Request& request, uint8_t rank, bool overloaded,
                     Totals totals, Instant now) {
  const int64_t bound = WaitingBound();
  const size_t own = Index(request.criticality);
  while (totals.queued + 1 > bound && totals.queued > 0) {
    size_t least = kCriticalities - 1;
    while (!totals.Has(least)) --least;
    const uint8_t worst =
        overloaded && !IsAlone() ? FindWorst(least).rank : uint8_t{0};
    if (IsLeastWanted(own, rank, least, worst > 0 ? worst : kAnyRank,
                      overloaded)) {
      return false;
    }
    Waiter* const victim = queue_.NextToLeave();
    if (victim == nullptr || Index(victim->request_.criticality) < least ||
        victim->rank_ < worst) {
      return true;
    }
    if (IsLeastWanted(own, rank, least, victim->rank_, overloaded)) {
      return false;
    }
    ShedWaiting(*victim, overloaded ? Reason::kLevel : Reason::kLimit, now);
    --totals.waiting[least];
    --totals.queued;
  }
  return true;
}

// Runs what waits while there are places.
void Guard::Pump(Instant now) {
  LapseOverdue(now);
  ReturnFree();
  bool backlog_dropped = false;
  while (!queue_.empty()) {
    Waiter* const next = NextToRun();
    if (next == nullptr) return;
    // Its expiry is its deadline where that is enforced.
    if (IsHopeless(next->request_, next->expiry_, now)) {
      ShedWaiting(*next, Reason::kDeadline, now);
      backlog_dropped = true;
      continue;
    }
    if (!MayGoFirst(SumShards(), now) || !Acquire()) return;
    RunWaiting(*next, now);
  }
  NoteQueueEmpty(backlog_dropped, now);
}

// The next to run that leaves others their share of the places; null when all
// that could go have to wait for that.
Waiter* Guard::NextToRun() {
  const bool overloaded = IsOverloaded();
  uint64_t blocked = 0;
  Waiter* next = queue_.NextToRun(overloaded);
  while (has_kinds_ && next != nullptr &&
         HasItsShare(next->row_, Index(next->request_.criticality))) {
    blocked |= uint64_t{1} << next->row_;
    next = queue_.NextToRun(overloaded, blocked);
  }
  return next;
}

// The worker whose first request goes before our first one, being more critical
// or waiting longer by more than a tick; null: none.
const Region::Shard* Guard::FirstElsewhere() const {
  const Region::Shard* first = nullptr;
  size_t most = Index(queue_.MostCritical());
  int64_t oldest = shard_.oldest_ns.load(kRelaxed) - kTick.count();
  region_.ForEachClaimed([&](size_t, const Region::Shard& shard) {
    size_t c = 0;
    while (c <= most && shard.waiting[c].load(kRelaxed) <= 0) ++c;
    if (c > most) return;
    const int64_t came = shard.oldest_ns.load(kRelaxed);
    if (c == most && came >= oldest) return;
    first = &shard;
    most = c;
    oldest = came;
  });
  return first;
}

// A free place is left to such a worker, unless that one is stuck.
bool Guard::MayGoFirst(const Totals& totals, Instant now) {
  if (IsAlone()) return true;
  const Region::Shard* const first = FirstElsewhere();
  if (first == nullptr) return true;
  const YieldedTo to = StandingOf(*first);
  if (to != yielding_to_ || first != yielding_shard_) {
    yielding_to_ = to;
    yielding_shard_ = first;
    yielding_since_ = kNever;
    yielded_in_vain_ = false;
  }
  if (yielded_in_vain_) return true;
  if (totals.held >= region_.published.slots.load(kRelaxed)) {
    yielding_since_ = kNever;
    return true;
  }
  if (yielding_since_ == kNever) yielding_since_ = now;
  yielded_in_vain_ = now - yielding_since_ >= kYield;
  return yielded_in_vain_;
}

Guard::YieldedTo Guard::StandingOf(const Region::Shard& shard) const {
  return {
      shard.oldest_ns.load(kRelaxed),
      region_.places.Of(static_cast<size_t>(&shard - region_.shards.data()))};
}

void Guard::NoteQueueEmpty(bool backlog_dropped, Instant now) {
  const Totals totals = SumShards();
  if (totals.queued > 0) return;
  const auto mode = static_cast<LawMode>(region_.published.mode.load(kRelaxed));
  if (mode == LawMode::kDrain) {
    StepLaw(now, /*queue_formed=*/false, /*queue_empty=*/true);
  }
  const int64_t slots = region_.published.slots.load(kRelaxed);
  // A queue that emptied because nothing in it could be answered in time any
  // more was a backlog all the same.
  if (totals.held < slots && !backlog_dropped) MarkUnbound();
  if (2 * totals.held < slots) SetTight(false);
}

void Guard::ShedWaiting(Waiter& waiter, Reason reason, Instant now) {
  if ((reason == Reason::kLevel && GoesOn(waiter.request_, Stage::kLevel)) ||
      (reason == Reason::kLimit && GoesOn(waiter.request_, Stage::kLimit))) {
    AcquireAnyway();
    RunWaiting(waiter, now);
    return;
  }
  queue_.Remove(waiter);
  PublishQueue();
  SetDecided(waiter, Refuse(waiter.request_, reason, queue_.size(),
                            waiter.rank_, waiter.taken_)
                         .decision);
}

void Guard::RunWaiting(Waiter& waiter, Instant now) {
  const Request& request = waiter.request_;
  // One that came too late was counted when it came.
  if (request.deadline > request.arrived && waiter.expiry_ == kNever &&
      IsHopeless(request, request.deadline, now)) {
    GoesOn(request, Stage::kDeadline);
  }
  queue_.Remove(waiter);
  PublishQueue();
  Admission admission =
      Run(request, Reason::kWaited, /*counted=*/true, waiter.taken_, now);
  waiter.permit_ = std::move(admission.permit);
  SetDecided(waiter, admission.decision);
}

void Guard::SetDecided(Waiter& waiter, const Decision& decision) {
  waiter.decision_ = decision;
  waiter.state_ = Waiter::State::kDecided;
  waiter.by_class_ = {.next = nullptr, .previous = decided_last_};
  (decided_last_ != nullptr ? decided_last_->by_class_.next : decided_first_) =
      &waiter;
  decided_last_ = &waiter;
}

void Guard::TakeDecided(Waiter& waiter) {
  Waiter* const next = waiter.by_class_.next;
  Waiter* const previous = waiter.by_class_.previous;
  (previous != nullptr ? previous->by_class_.next : decided_first_) = next;
  (next != nullptr ? next->by_class_.previous : decided_last_) = previous;
  waiter.by_class_ = {};
  waiter.state_ = Waiter::State::kIdle;
}

Waiter* Guard::NextDecided() {
  Waiter* const waiter = decided_first_;
  if (waiter != nullptr) TakeDecided(*waiter);
  return waiter;
}

void Guard::Unlink(Waiter& waiter) {
  if (waiter.state_ == Waiter::State::kWaiting) {
    queue_.Remove(waiter);
    waiter.state_ = Waiter::State::kIdle;
    PublishQueue();
    Refuse(waiter.request_, Reason::kCancelled, 0, 0, waiter.taken_);
  } else if (waiter.state_ == Waiter::State::kDecided) {
    TakeDecided(waiter);
    waiter.permit_.data_.started = false;
    Finish(waiter.TakePermit(), Outcome::kCancelled, now_);
  }
}

// Of a process that was forked: the queue is its own, what it counts is not.
void Guard::Forget(Waiter& waiter) {
  if (waiter.state_ == Waiter::State::kWaiting) {
    queue_.Remove(waiter);
    waiter.state_ = Waiter::State::kIdle;
  } else if (waiter.state_ == Waiter::State::kDecided) {
    TakeDecided(waiter);
    waiter.permit_.data_.guard = nullptr;
  }
}

void Guard::Cancel(Waiter& waiter, Instant now) {
  if (waiter.state_ == Waiter::State::kIdle) return;
  now = Advance(now);
  Unlink(waiter);
  if (queue_.empty() && Tight()) Pump(now);
}

void Guard::Tick(Instant now) {
  if (left_) return;
  now = Advance(now);
  while (Waiter* waiter = queue_.NextToExpire()) {
    if (waiter->expiry_ > now) break;
    ShedWaiting(*waiter, Reason::kDeadline, now);
  }
  StepLaw(now);
  PurgeExcess(now);
  // An idle worker keeps no places: its next event may be far.
  if (inflight_ == 0) ReturnFree();
  FadeGhosts(now);
  // Also when somebody has cleared `tight` at the wrong moment.
  if (!queue_.empty()) SetTight(true);
  if (Tight()) Pump(now);
}

Guard::Worst Guard::FindWorst(size_t least) const {
  Worst worst;
  region_.ForEachClaimed([&](size_t, const Region::Shard& shard) {
    const int64_t waiting = shard.waiting[least].load(kRelaxed);
    if (waiting == 0) return;
    const uint8_t rank = shard.worst_rank.load(kRelaxed);
    if (rank > worst.rank) worst = {rank, 0};
    if (rank == worst.rank) worst.waiting += waiting;
  });
  return worst;
}

// What other workers let in while it was ours that had to leave.  Of the least
// critical class the highest ranks go first, wherever they wait: one rank a
// tick, or each worker's share of all when more come meanwhile.
void Guard::PurgeExcess(Instant now) {
  const Totals totals = SumShards();
  const bool overloaded = IsOverloaded();
  const int64_t bound = WaitingBound();
  int64_t excess = totals.queued - bound;
  const bool by_rank = overloaded && excess <= bound;
  for (size_t c = kCriticalities; c-- > 0 && excess > 0;) {
    const int64_t all = totals.waiting[c];
    const int64_t own = queue_.size(static_cast<Criticality>(c));
    if (all <= 0) continue;
    const Worst worst = by_rank ? FindWorst(c) : Worst{0, all};
    const int64_t of = std::max<int64_t>(worst.waiting, 1);
    int64_t share = std::min(own, (std::min(excess, all) * own + of - 1) / of);
    for (; share > 0; --share) {
      Waiter& last = *queue_.NextToLeave();
      if (last.rank_ < worst.rank) break;
      ShedWaiting(last, overloaded ? Reason::kLevel : Reason::kLimit, now);
    }
    // The next rank, and the next class, at the next tick.
    if (by_rank) return;
    excess -= all;
  }
}

Instant Guard::NextWake() const {
  if (left_) return kNever;
  const Waiter* const first = queue_.NextToExpire();
  const Instant expiry = first != nullptr ? first->expiry_ : kNever;
  // Alone, only what others do is missed: the clock still moves the law, and
  // places come back by it.
  if (!queue_.empty()) {
    return std::min(expiry, now_ + (IsAlone() ? kSpareTick : kTick));
  }
  if (free_ + ghost_places_ == 0) return kNever;
  return now_ + (IsAlone() ? kLoneSpareTick : kSpareTick);
}

void Guard::Leave(Instant now) {
  if (left_) return;
  Stop(now);
  left_ = true;
  inflight_ = free_ = ghost_places_ = 0;
  for (auto& running : shard_.running) running.store(0, kRelaxed);
  const auto account = static_cast<size_t>(shard_index_);
  shard_.inflight.store(0);
  region_.places.Close(account);
  region_.in_system.Close(account);
}

void Guard::Stop(Instant now) {
  now = Advance(now);
  while (Waiter* waiter = queue_.NextToLeave()) {
    ShedWaiting(*waiter, Reason::kShutdown, now);
  }
}

}  // namespace weir
