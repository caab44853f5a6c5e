// Guard: deciding.  guard_waiting.cc has what waits, guard_places.cc the places
// under the limit, guard_measure.cc what feeds the law, guard_degrade.cc what
// is answered cheaper.

#include "weir/guard.h"

#include <cassert>
#include <utility>

#include "relaxed.h"
#include "weir/capacity_look.h"

namespace weir {
namespace {

ClassCounter ShedCounter(Reason reason) {
  return static_cast<ClassCounter>(
      static_cast<size_t>(ClassCounter::shed_paused_total) + Index(reason) -
      kFirstShedReason);
}

// Of a stage that can refuse: all but the first.
bool InShadow(const Policy& policy, const Request& request, Stage stage) {
  return policy.resources[request.resource].stages[Index(stage)] ==
         StageMode::kShadow;
}

ClassCounter ShadowCounter(Stage stage) {
  return static_cast<ClassCounter>(
      static_cast<size_t>(ClassCounter::shadow_switch_total) + Index(stage) -
      Index(Stage::kSwitch));
}

// Refused for want of room, by whatever sign; not since the caller has had its
// share, is too late or too far behind.
bool IsShortage(Reason reason) {
  return reason == Reason::kDeadline || reason == Reason::kTiers ||
         reason == Reason::kSystem || reason == Reason::kLevel ||
         reason == Reason::kLimit;
}

ClassCounter FinishedCounter(Outcome outcome) {
  return static_cast<ClassCounter>(
      static_cast<size_t>(ClassCounter::finished_ok_total) + Index(outcome));
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
      rows_since_(now),
      executor_at_(now),
      now_(now),
      due_places_(policy_->deadline, now),
      answered_at_(now),
      last_step_(now),
      last_ladders_(now) {
  // What a former guard of this shard did not give back.
  const auto account = static_cast<size_t>(shard);
  region_.places.Close(account);
  region_.in_system.Close(account);
  for (Ledger& queued : region_.queued) queued.Close(account);
  for (auto& running : shard_.running) running.store(0, kRelaxed);
  for (auto& rows_waiting : shard_.waiting_rows)
    rows_waiting.store(0, kRelaxed);
  ApplySwitches();
  ConfigureStages();
  StepLaw(now);
}

Guard::~Guard() {
  while (Waiter* waiter = queue_.NextToLeave()) {
    IsForked() ? Forget(*waiter) : Unlink(*waiter);
  }
  while (decided_first_ != nullptr) {
    IsForked() ? Forget(*decided_first_) : Unlink(*decided_first_);
  }
  if (IsForked() || left_) return;
  assert(inflight_ == 0 && "permits must not outlive their guard");
  free_ += ghost_places_;
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
  has_ladders_ = false;
  has_kinds_ = policy_->resources.size() > 1;
  for (size_t i = 0; i < policy_->resources.size(); ++i) {
    const Resource& resource = policy_->resources[i];
    Region::Resource& row = region_.resources[rows_[i]];
    const bool passes =
        resource.exempt &&
        resource.stages[Index(Stage::kExempt)] == StageMode::kEnforce;
    const bool acts =
        resource.stages[Index(Stage::kSwitch)] == StageMode::kEnforce;
    row.paused.store(resource.paused, kRelaxed);
    row.deaf.store(passes || !acts, kRelaxed);
    row.levels.store(static_cast<uint8_t>(resource.degrade.size()), kRelaxed);
    has_ladders_ = has_ladders_ || !resource.degrade.empty();
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
  WaitingQueue followed;
  while (Waiter* waiter = queue_.NextToRun(/*overloaded=*/false)) {
    queue_.Remove(*waiter);
    uint16_t& resource = waiter->request_.resource;
    const auto same = policy->FindResource(policy_->resources[resource].name);
    if (!same) waiter->taken_.quota = false;
    resource = same.value_or(0);
    waiter->row_ = (*rows)[resource];
    followed.Push(*waiter);
  }
  queue_ = followed;
  policy_ = std::move(policy);
  rows_ = *rows;
  ApplySwitches();
  ConfigureStages();
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
  if (left_) [[unlikely]]
    return {{Verdict::kShed, Reason::kShutdown, {}}, {}};
  assert(request.resource < policy_->resources.size());
  const Resource& resource = policy_->resources[request.resource];
  const auto mode = [&](Stage stage) { return resource.stages[Index(stage)]; };
  const uint16_t row = rows_[request.resource];

  if (resource.exempt && mode(Stage::kExempt) == StageMode::kEnforce) {
    Count(Counter::exempt_total);
    return Run(request, Reason::kExempt, /*counted=*/false, {}, now);
  }
  Count(ClassCounter::offered_total, request.criticality);
  Increment(shard_.resources[row][Region::kOffered]);

  if (IsPaused(request, now) && !GoesOn(request, Stage::kSwitch)) {
    return Shed(request, Reason::kPaused, PauseLeft(request, now));
  }
  if (now >= request.deadline && !GoesOn(request, Stage::kDeadline)) {
    return Shed(request, Reason::kDeadline, Duration(0));
  }
  if (stages_of_[request.resource] != 0) [[unlikely]] {
    return DecideStaged(request, waiter, now);
  }
  return DecideByCapacity(request, waiter, mode(Stage::kLimit), {}, now);
}

// The same for a resource that has stages between deadline and level.
Admission Guard::DecideStaged(const Request& request, Waiter* waiter,
                              Instant now) {
  Taken taken;
  if (const auto refusal = PassStages(request, taken, now)) {
    GiveBack(request, taken);
    Admission shed = Shed(request, refusal->reason, refusal->retry_after);
    if (IsShortage(refusal->reason)) {
      CountEarlyArrival(request, now);
      AdviseIfRetriesAbound(request, shed.decision);
    }
    return shed;
  }
  const Resource& resource = policy_->resources[request.resource];
  return DecideByCapacity(request, waiter,
                          resource.stages[Index(Stage::kLimit)], taken, now);
}

// Level and limit.
Admission Guard::DecideByCapacity(const Request& request, Waiter* waiter,
                                  StageMode limit_mode, const Taken& taken,
                                  Instant now) {
  CountArrival(request, now);
  if (has_kinds_) NoteRow(rows_[request.resource], now);
  if (limit_mode == StageMode::kOff) {
    return Run(request, Reason::kRoom, /*counted=*/false, taken, now);
  }
  if (!Tight() && Acquire()) {
    MarkUnbound();
    return Run(request, Reason::kRoom, /*counted=*/true, taken, now);
  }
  return DecideWithoutRoom(request, waiter, taken, now);
}

// Places are scarce, or somebody waits.
Admission Guard::DecideWithoutRoom(const Request& request, Waiter* waiter,
                                   const Taken& taken, Instant now) {
  LapseOverdue(now);
  ReturnFree();
  const Totals totals = SumShards();
  const int64_t slots = region_.published.slots.load(kRelaxed);
  const uint16_t row = rows_[request.resource];
  if (totals.queued == 0 &&
      !(has_kinds_ && HasItsShare(row, Index(request.criticality))) &&
      Acquire()) {
    if (totals.held + 1 < slots) MarkUnbound();
    if (2 * totals.held < slots) SetTight(false);
    return Run(request, Reason::kRoom, /*counted=*/true, taken, now);
  }
  if (policy_->resources[request.resource].stages[Index(Stage::kLimit)] ==
      StageMode::kShadow) {
    // Nobody waits in shadow, so what runs beyond the limit is the queue that
    // there would be; only what finds that full would be refused.
    const bool overloaded = IsOverloaded();
    const int64_t waiting =
        totals.queued + std::max<int64_t>(totals.held - slots, 0);
    if (waiter == nullptr || waiting >= WaitingBound()) {
      if (!overloaded || !InShadow(*policy_, request, Stage::kLevel) ||
          waiter == nullptr) {
        Count(ClassCounter::shadow_limit_total, request.criticality);
      } else {
        Count(ClassCounter::shadow_level_total, request.criticality);
      }
    } else if (InShadow(*policy_, request, Stage::kDeadline) &&
               IsHopeless(request, request.deadline, now)) {
      Count(ClassCounter::shadow_deadline_total, request.criticality);
    }
    AcquireAnyway();
    return Run(request, Reason::kRoom, /*counted=*/true, taken, now);
  }
  if (waiter == nullptr) {
    return Refuse(request, Reason::kLimit, totals.queued, 0, taken);
  }
  if (Enforces(request, Stage::kDeadline) &&
      IsHopeless(request, request.deadline, now)) {
    return Refuse(request, Reason::kDeadline, totals.queued, 0, taken);
  }
  const uint8_t rank =
      Rank(region_.usage.Level(region_.Keyed(request.client), now),
           request.attempt > 0);
  const bool overloaded = IsOverloaded();
  // While a place is free the request waits for another worker's move, not for
  // room: if that one is stuck, it runs within three ticks.
  const bool place_is_free = !IsAlone() && queue_.size() < slots - totals.held;
  if (!place_is_free && !MakeRoom(request, rank, overloaded, totals, now)) {
    if (!GoesOn(request, overloaded ? Stage::kLevel : Stage::kLimit)) {
      return Refuse(request, overloaded ? Reason::kLevel : Reason::kLimit,
                    totals.queued, rank, taken);
    }
    AcquireAnyway();
    return Run(request, Reason::kRoom, /*counted=*/true, taken, now);
  }
  return Wait(request, *waiter, rank, taken, totals.queued == 0, now);
}

Admission Guard::Run(const Request& request, Reason reason, bool counted,
                     const Taken& taken, Instant now) {
  // Filled in where it is returned: copying words just written as wider ones
  // costs more than all the counting.
  Admission admission;
  admission.decision.reason = reason;
  Permit::Data& data = admission.permit.data_;
  data.guard = this;
  data.arrived = request.arrived;
  data.admitted_at = now;
  data.deadline = request.deadline;
  data.criticality = request.criticality;
  data.row = rows_[request.resource];
  data.counted = counted;
  data.in_system = taken.system;
  if (counted) {
    data.inflight_before = static_cast<int32_t>(InflightOfAll(now));
    shard_.inflight.store(++inflight_, kRelaxed);
    if (!due_places_.Reaches(request.deadline)) LapseOverdue(now);
    data.due = due_places_.Add(request.deadline);
    data.in_row = has_kinds_;
    if (has_kinds_) CountUp(shard_.running[data.row], 1);
  }
  if (reason != Reason::kExempt) {
    if (has_ladders_) Degrade(request, now, admission);
    Count(ClassCounter::admitted_total, request.criticality);
    shard_.queue_delay.Record(now - request.arrived);
    region_.usage.Add(region_.Keyed(request.client), now);
  } else {
    data.exempt = true;
  }
  return admission;
}

bool Guard::IsRefusedAnyhow(const Request& request, Instant now) const {
  if (policy_->resources[request.resource].exempt) return false;
  if (Enforces(request, Stage::kSwitch) && IsPaused(request, now)) return true;
  if (Enforces(request, Stage::kDeadline) && now >= request.deadline) {
    return true;
  }
  if (!Enforces(request, Stage::kLevel) ||
      region_.published.standing.load(kRelaxed) == 0) {
    return false;
  }
  // Whom the level spares least: those of the class that have used nothing.
  return Level::HighestOf(request.criticality).value() <
         region_.flags.level.load(kRelaxed);
}

bool Guard::IsPaused(const Request& request, Instant now) const {
  const Region::Resource& row = region_.resources[rows_[request.resource]];
  if (row.paused.load(kRelaxed) != 0) return true;
  const uint64_t by_hand = row.by_hand.load(kRelaxed);
  if (by_hand == 0) return false;
  const Switch set = Switch::Unpack(by_hand);
  return set.action == Switch::Action::kPause && set.ActiveAt(now);
}

Admission Guard::Refuse(const Request& request, Reason reason, int64_t queued,
                        uint8_t rank, const Taken& taken) {
  GiveBack(request, taken);
  if (reason == Reason::kLevel) {
    region_.flags.level.store(Level(request.criticality, UsageOf(rank)).value(),
                              kRelaxed);
  }
  if (reason == Reason::kLevel || reason == Reason::kLimit ||
      reason == Reason::kDeadline) {
    ++refused_;
  }
  Admission shed = Shed(request, reason, RetryAfter(reason, queued));
  if (IsShortage(reason)) AdviseIfRetriesAbound(request, shed.decision);
  return shed;
}

Admission Guard::Shed(const Request& request, Reason reason,
                      Duration retry_after) {
  Count(ShedCounter(reason), request.criticality);
  Increment(shard_.resources[rows_[request.resource]][Region::kShed]);
  return {{Verdict::kShed, reason, retry_after}, {}};
}

bool Guard::Enforces(const Request& request, Stage stage) const {
  return policy_->resources[request.resource].stages[Index(stage)] ==
         StageMode::kEnforce;
}

bool Guard::GoesOn(const Request& request, Stage stage) {
  const StageMode mode =
      policy_->resources[request.resource].stages[Index(stage)];
  if (mode == StageMode::kShadow) {
    Count(ShadowCounter(stage), request.criticality);
  }
  return mode != StageMode::kEnforce;
}

bool Guard::IsHopeless(const Request& request, Instant deadline,
                       Instant now) const {
  if (deadline == kNever) return false;
  // What was seen of late, unless the limit has been lowered since.
  const double takes =
      std::min(usual_latency_[rows_[request.resource]].likely(),
               region_.published.service_latency.load(kRelaxed));
  return now + FromSeconds(takes) > deadline;
}

void Guard::Finish(Permit&& permit, Outcome outcome, Instant now) {
  Permit::Data& data = permit.data_;
  if (data.guard == nullptr) return;
  assert(data.guard == this);
  data.guard = nullptr;
  if (left_) [[unlikely]]
    return;
  now = Advance(now);
  // A way of its own, so that the usual one need not prepare for the call.
  if (data.in_system) [[unlikely]]
    return EndInSystem(data, outcome, now);
  End(data, outcome, now);
}

void Guard::End(const Permit::Data& data, Outcome outcome, Instant now) {
  if (!data.exempt) {
    Count(FinishedCounter(outcome), data.criticality);
    if (now > data.deadline) Count(ClassCounter::late_total, data.criticality);
    if (outcome != Outcome::kIgnored) shard_.latency.Record(now - data.arrived);
    if (data.drill != DrillSide::kNone) CountDrilled(data, outcome, now);
  }
  if (!data.counted) return;
  shard_.inflight.store(--inflight_, kRelaxed);
  if (outcome == Outcome::kOk) Sample(data, now);
  const bool lost = data.started && (outcome == Outcome::kTimedOut ||
                                     outcome == Outcome::kCancelled);
  if (lost) SampleLost(data, now);
  GiveBackPlace(data, lost, now);
  if (Tight() || !queue_.empty()) Pump(now);
}

void Permit::Abandon() {
  Guard& guard = *data_.guard;
  if (guard.IsForked()) {
    data_.guard = nullptr;
    return;
  }
  guard.Finish(std::move(*this), Outcome::kIgnored, guard.now_);
}

Waiter::~Waiter() {
  if (state_ == State::kIdle) return;
  guard_->IsForked() ? guard_->Forget(*this) : guard_->Unlink(*this);
}

int64_t Guard::limit() const { return region_.published.slots.load(kRelaxed); }

}  // namespace weir
