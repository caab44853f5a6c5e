// Guard: deciding, and what waits.  guard_places.cc has the places under the
// limit, guard_measure.cc what feeds the law.

#include "weir/guard.h"

#include <cassert>
#include <utility>

#include "relaxed.h"

namespace weir {
namespace {

// How often a worker with waiting requests looks at the other workers.
// Chosen: half of the 2 ms within which they shall catch up with each other.
constexpr Duration kTick = std::chrono::milliseconds(1);
// How often one that only keeps spare places does.  Chosen: they are half of
// what was free at most, so this need not be quick.
constexpr Duration kSpareTick = std::chrono::milliseconds(10);
// How long free places are left to more critical requests that wait in another
// worker, before it must be taken for stuck.  Chosen: three ticks.
constexpr Duration kYield = 3 * kTick;

ClassCounter ShedCounter(Reason reason) {
  return static_cast<ClassCounter>(
      static_cast<size_t>(ClassCounter::shed_paused_total) + Index(reason) -
      kFirstShedReason);
}

ClassCounter ShadowCounter(Stage stage) {
  return static_cast<ClassCounter>(
      static_cast<size_t>(ClassCounter::shadow_exempt_total) + Index(stage));
}

ClassCounter FinishedCounter(Outcome outcome) {
  return static_cast<ClassCounter>(
      static_cast<size_t>(ClassCounter::finished_ok_total) + Index(outcome));
}

// The stage that sheds for a reason.
Stage StageOf(Reason reason) {
  switch (reason) {
    case Reason::kPaused:
      return Stage::kSwitch;
    case Reason::kDeadline:
      return Stage::kDeadline;
    case Reason::kLevel:
      return Stage::kLevel;
    default:
      return Stage::kLimit;
  }
}

}  // namespace

Result<std::unique_ptr<Guard>> Guard::Make(std::shared_ptr<const Policy> policy,
                                           Region& region, int shard,
                                           Instant now) {
  if (std::optional<Error> error = policy->Check()) return *std::move(error);
  if (shard < 0 || static_cast<size_t>(shard) >= Region::kShards ||
      region.Owner(shard).pid == 0) {
    return Error{"shard " + std::to_string(shard) + " is not claimed"};
  }
  Result<Rows> rows = MapResources(*policy, region);
  if (!rows) return rows.error();
  return std::unique_ptr<Guard>(
      new Guard(std::move(policy), region, shard, *rows, now));
}

Guard::Guard(std::shared_ptr<const Policy> policy, Region& region, int shard,
             const Rows& rows, Instant now)
    : policy_(std::move(policy)),
      region_(region),
      shard_(region.shards[static_cast<size_t>(shard)]),
      shard_index_(shard),
      rows_(rows),
      configure_law_(true),
      now_(now),
      last_step_(now) {
  ApplySwitches();
  StepLaw(now);
}

Guard::~Guard() {
  while (Waiter* waiter = queue_.NextToLeave()) Unlink(*waiter);
  while (decided_first_ != nullptr) Unlink(*decided_first_);
  assert(inflight_ == 0 && "permits must not outlive their guard");
  ReturnFree();
}

Result<Guard::Rows> Guard::MapResources(const Policy& policy, Region& region) {
  if (policy.service != region.service()) {
    return Error{"the policy is for service `" + policy.service +
                 "`, the region is of `" + std::string(region.service()) + "`"};
  }
  Rows rows{};
  for (size_t i = 0; i < policy.resources.size(); ++i) {
    const auto row = region.ResourceRow(policy.resources[i].name);
    if (!row) {
      return Error{
          "the region has no room for resource `" + policy.resources[i].name +
          "`: it keeps each name it ever saw, 64 at most; remove the region "
          "and start anew"};
    }
    rows[i] = *row;
  }
  return rows;
}

void Guard::ApplySwitches() {
  for (size_t i = 0; i < policy_->resources.size(); ++i) {
    region_.resources[rows_[i]].paused.store(policy_->resources[i].paused,
                                             kRelaxed);
  }
  region_.header.policy_version.fetch_add(1, kRelaxed);
}

std::optional<Error> Guard::Apply(std::shared_ptr<const Policy> policy,
                                  Instant now) {
  now = Advance(now);
  if (std::optional<Error> error = policy->Check()) return error;
  Result<Rows> rows = MapResources(*policy, region_);
  if (!rows) return rows.error();
  // What waits keeps its place; of a resource that is gone it follows the
  // rules of the first.
  for (Waiter* waiter = queue_.Next(nullptr); waiter != nullptr;
       waiter = queue_.Next(waiter)) {
    uint16_t& resource = waiter->request_.resource;
    resource =
        policy->FindResource(policy_->resources[resource].name).value_or(0);
  }
  policy_ = std::move(policy);
  rows_ = *rows;
  ApplySwitches();
  configure_law_ = true;
  StepLaw(now);
  Pump(now);
  return std::nullopt;
}

Admission Guard::Admit(const Request& request, Instant now) {
  return Decide(request, nullptr, Advance(now));
}

Admission Guard::Admit(const Request& request, Waiter& waiter, Instant now) {
  return Decide(request, &waiter, Advance(now));
}

Admission Guard::Decide(const Request& request, Waiter* waiter, Instant now) {
  assert(request.resource < policy_->resources.size());
  const Resource& resource = policy_->resources[request.resource];
  const auto mode = [&](Stage stage) { return resource.stages[Index(stage)]; };
  const uint16_t row = rows_[request.resource];

  if (resource.exempt && mode(Stage::kExempt) == StageMode::kEnforce) {
    Count(Counter::exempt_total);
    return Run(request, Reason::kExempt, /*counted=*/false, now);
  }
  Count(ClassCounter::offered_total, request.criticality);
  auto& offered = shard_.resources[row][Region::kOffered];
  offered.store(offered.load(kRelaxed) + 1, kRelaxed);

  if (region_.resources[row].paused.load(kRelaxed) != 0 &&
      !GoesOn(request, Stage::kSwitch)) {
    return Refuse(request, Reason::kPaused, 0, 0);
  }
  if (now >= request.deadline && !GoesOn(request, Stage::kDeadline)) {
    return Refuse(request, Reason::kDeadline, 0, 0);
  }
  CountArrival(request, now);
  if (mode(Stage::kLimit) == StageMode::kOff) {
    return Run(request, Reason::kRoom, /*counted=*/false, now);
  }
  if (!Tight() && Acquire()) {
    MarkUnbound();
    return Run(request, Reason::kRoom, /*counted=*/true, now);
  }
  return DecideWithoutRoom(request, waiter, now);
}

// Places are scarce, or somebody waits.
Admission Guard::DecideWithoutRoom(const Request& request, Waiter* waiter,
                                   Instant now) {
  ReturnFree();
  const Totals totals = SumShards();
  const int64_t slots = region_.published.slots.load(kRelaxed);
  if (totals.queued == 0 && Acquire()) {
    if (totals.held + 1 < slots) MarkUnbound();
    if (2 * totals.held < slots) SetTight(false);
    return Run(request, Reason::kRoom, /*counted=*/true, now);
  }
  if (policy_->resources[request.resource].stages[Index(Stage::kLimit)] ==
      StageMode::kShadow) {
    Count(ClassCounter::shadow_limit_total, request.criticality);
    AcquireAnyway();
    return Run(request, Reason::kRoom, /*counted=*/true, now);
  }
  if (waiter == nullptr) {
    return Refuse(request, Reason::kLimit, totals.queued, 0);
  }
  if (IsHopeless(request, now) && !GoesOn(request, Stage::kDeadline)) {
    return Refuse(request, Reason::kDeadline, totals.queued, 0);
  }
  const uint8_t usage = region_.usage.Level(request.client, now);
  const bool overloaded = IsOverloaded(totals.queued);
  if (!MakeRoom(request, usage, overloaded, totals, now)) {
    const Reason reason = overloaded ? Reason::kLevel : Reason::kLimit;
    if (!GoesOn(request, StageOf(reason))) {
      return Refuse(request, reason, totals.queued, usage);
    }
    AcquireAnyway();
    return Run(request, Reason::kRoom, /*counted=*/true, now);
  }
  return Wait(request, *waiter, usage, totals.queued == 0, now);
}

Admission Guard::Wait(const Request& request, Waiter& waiter, uint8_t usage,
                      bool forms_queue, Instant now) {
  assert(!waiter.waiting());
  waiter.request_ = request;
  waiter.usage_ = usage;
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
// request itself.  Less critical requests of other workers are left to their
// next tick, and the bound is exceeded until then.
bool Guard::MakeRoom(const Request& request, uint8_t usage, bool overloaded,
                     Totals totals, Instant now) {
  const int64_t bound = WaitingBound(overloaded);
  const size_t own = Index(request.criticality);
  while (totals.queued + 1 > bound && totals.queued > 0) {
    size_t least = kCriticalities - 1;
    while (!totals.Has(least)) --least;
    if (least < own || (least == own && !overloaded)) return false;
    Waiter* const victim = queue_.NextToLeave();
    if (victim == nullptr || Index(victim->request_.criticality) < least) {
      return true;
    }
    // Among equals the client that used more goes, else the older request.
    if (least == own && usage > victim->usage_) return false;
    ShedWaiting(*victim, overloaded ? Reason::kLevel : Reason::kLimit, now);
    --totals.waiting[least];
    --totals.queued;
  }
  return true;
}

Admission Guard::Run(const Request& request, Reason reason, bool counted,
                     Instant now) {
  Permit::Data data;
  data.guard = this;
  data.arrived = request.arrived;
  data.admitted_at = now;
  data.deadline = request.deadline;
  data.criticality = request.criticality;
  data.counted = counted;
  if (counted) {
    data.inflight_before = static_cast<int32_t>(InflightOfAll(now));
    shard_.inflight.store(++inflight_, kRelaxed);
  }
  if (reason != Reason::kExempt) {
    Count(ClassCounter::admitted_total, request.criticality);
    shard_.queue_delay.Record(now - request.arrived);
    region_.usage.Add(request.client, now);
  } else {
    data.exempt = true;
  }
  return {{Verdict::kAdmit, reason, {}}, Permit(data)};
}

Admission Guard::Refuse(const Request& request, Reason reason, int64_t queued,
                        uint8_t usage) {
  Count(ShedCounter(reason), request.criticality);
  auto& shed = shard_.resources[rows_[request.resource]][Region::kShed];
  shed.store(shed.load(kRelaxed) + 1, kRelaxed);
  if (reason == Reason::kLevel) {
    const auto criticality = static_cast<int64_t>(Index(request.criticality));
    region_.flags.level.store(128 * (3 - criticality) + 127 - usage, kRelaxed);
  }
  return {{Verdict::kShed, reason, RetryAfter(reason, queued)}, {}};
}

bool Guard::GoesOn(const Request& request, Stage stage) {
  const StageMode mode =
      policy_->resources[request.resource].stages[Index(stage)];
  if (mode == StageMode::kShadow) {
    Count(ShadowCounter(stage), request.criticality);
  }
  return mode != StageMode::kEnforce;
}

bool Guard::IsHopeless(const Request& request, Instant now) const {
  return request.deadline != kNever &&
         now + FromSeconds(latency_) > request.deadline;
}

void Guard::Finish(Permit permit, Outcome outcome, Instant now) {
  Permit::Data& data = permit.data_;
  if (data.guard == nullptr) return;
  assert(data.guard == this);
  data.guard = nullptr;
  now = Advance(now);
  if (!data.exempt) {
    Count(FinishedCounter(outcome), data.criticality);
    if (now > data.deadline) Count(ClassCounter::late_total, data.criticality);
    if (outcome != Outcome::kIgnored) shard_.latency.Record(now - data.arrived);
  }
  if (!data.counted) return;
  shard_.inflight.store(--inflight_, kRelaxed);
  if (outcome < Outcome::kCancelled) Sample(data, now);
  Release();
  if (Tight()) Pump(now);
}

void Permit::Abandon() {
  Guard& guard = *data_.guard;
  guard.Finish(std::move(*this), Outcome::kIgnored, guard.now_);
}

Waiter::~Waiter() {
  if (state_ != State::kIdle) guard_->Unlink(*this);
}

// Runs what waits while there are places.
void Guard::Pump(Instant now) {
  ReturnFree();
  bool backlog_dropped = false;
  while (!queue_.empty()) {
    const Region::Published& law = region_.published;
    if (law.demand.load(kRelaxed) < .9 * law.capacity.load(kRelaxed)) {
      region_.flags.overloaded.store(0, kRelaxed);
    }
    Waiter* const next =
        queue_.NextToRun(region_.flags.overloaded.load(kRelaxed) != 0);
    if (IsHopeless(next->request_, now) &&
        !GoesOn(next->request_, Stage::kDeadline)) {
      ShedWaiting(*next, Reason::kDeadline, now);
      backlog_dropped = true;
      continue;
    }
    if (!MayGoFirst(SumShards(), now) || !Acquire()) return;
    RunWaiting(*next, now);
  }
  NoteQueueEmpty(backlog_dropped, now);
}

// A free place is left to more critical requests that wait in other workers,
// unless it stays free.
bool Guard::MayGoFirst(const Totals& totals, Instant now) {
  if (IsAlone()) return true;
  bool others_first = false;
  for (size_t c = 0; c < Index(queue_.MostCritical()); ++c) {
    others_first = others_first || totals.Has(c);
  }
  const bool room = totals.held < region_.published.slots.load(kRelaxed);
  if (!others_first || !room) {
    yielding_since_ = kNever;
    return true;
  }
  if (yielding_since_ == kNever) yielding_since_ = now;
  if (now - yielding_since_ < kYield) return false;
  yielding_since_ = now;
  return true;
}

void Guard::NoteQueueEmpty(bool backlog_dropped, Instant now) {
  const Totals totals = SumShards();
  if (totals.queued > 0) return;
  region_.flags.overloaded.store(0, kRelaxed);
  const auto mode = static_cast<LawMode>(region_.published.mode.load(kRelaxed));
  if (mode >= LawMode::kDrainWait && mode <= LawMode::kDrainTake) {
    StepLaw(now, /*queue_formed=*/false, /*queue_empty=*/true);
  }
  const int64_t slots = region_.published.slots.load(kRelaxed);
  // A queue that emptied because nothing in it could be answered in time any
  // more was a backlog all the same.
  if (totals.held < slots && !backlog_dropped) MarkUnbound();
  if (2 * totals.held < slots) SetTight(false);
}

void Guard::ShedWaiting(Waiter& waiter, Reason reason, Instant now) {
  if ((reason == Reason::kLevel || reason == Reason::kLimit) &&
      GoesOn(waiter.request_, StageOf(reason))) {
    AcquireAnyway();
    RunWaiting(waiter, now);
    return;
  }
  queue_.Remove(waiter);
  PublishQueue();
  SetDecided(
      waiter,
      Refuse(waiter.request_, reason, queue_.size(), waiter.usage_).decision);
}

void Guard::RunWaiting(Waiter& waiter, Instant now) {
  queue_.Remove(waiter);
  PublishQueue();
  Admission admission =
      Run(waiter.request_, Reason::kWaited, /*counted=*/true, now);
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
    Refuse(waiter.request_, Reason::kCancelled, 0, 0);
  } else if (waiter.state_ == Waiter::State::kDecided) {
    TakeDecided(waiter);
    Finish(waiter.TakePermit(), Outcome::kCancelled, now_);
  }
}

void Guard::Cancel(Waiter& waiter, Instant now) {
  if (waiter.state_ == Waiter::State::kIdle) return;
  now = Advance(now);
  Unlink(waiter);
  if (queue_.empty() && Tight()) Pump(now);
}

void Guard::Tick(Instant now) {
  now = Advance(now);
  while (Waiter* waiter = queue_.NextToExpire()) {
    if (waiter->request_.deadline > now) break;
    ShedWaiting(*waiter, Reason::kDeadline, now);
  }
  if (!IsAlone()) {
    StepLaw(now);
    PurgeExcess(now);
    // An idle worker keeps no places: its next event may be far.
    if (inflight_ == 0) ReturnFree();
  }
  if (Tight()) Pump(now);
}

// What other workers let in while it was ours that had to leave.
void Guard::PurgeExcess(Instant now) {
  const Totals totals = SumShards();
  const bool overloaded = region_.flags.overloaded.load(kRelaxed) != 0;
  int64_t excess = totals.queued - WaitingBound(overloaded);
  for (size_t c = kCriticalities; c-- > 0 && excess > 0;) {
    const int64_t all = totals.waiting[c];
    const int64_t own = queue_.size(static_cast<Criticality>(c));
    if (all <= 0) continue;
    int64_t share =
        std::min(own, (std::min(excess, all) * own + all - 1) / all);
    for (; share > 0; --share) {
      ShedWaiting(*queue_.NextToLeave(),
                  overloaded ? Reason::kLevel : Reason::kLimit, now);
    }
    excess -= all;
  }
}

Instant Guard::NextWake() const {
  const Waiter* const first = queue_.NextToExpire();
  const Instant expiry = first != nullptr ? first->request_.deadline : kNever;
  if (IsAlone()) return expiry;
  if (!queue_.empty()) return std::min(expiry, now_ + kTick);
  return free_ > 0 ? now_ + kSpareTick : kNever;
}

void Guard::Stop(Instant now) {
  now = Advance(now);
  while (Waiter* waiter = queue_.NextToLeave()) {
    ShedWaiting(*waiter, Reason::kShutdown, now);
  }
}

int64_t Guard::limit() const { return region_.published.slots.load(kRelaxed); }

}  // namespace weir
