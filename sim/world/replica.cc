#include "replica.h"

#include <algorithm>

#include "weir/scenario/capacity.h"
#include "weir/scenario/service_time.h"

namespace weir::sim {

using scenario::Stage;

namespace {

// How often a ramp of speed moves.
constexpr Duration kRampStep = std::chrono::milliseconds(10);

Processor::Discipline DisciplineOf(const scenario::Tier& tier) {
  return tier.discipline == scenario::Discipline::kSharing
             ? Processor::Discipline::kSharing
             : Processor::Discipline::kFcfs;
}

bool Concerns(const std::vector<uint16_t>& replicas, size_t replica) {
  return replicas.empty() ||
         std::find(replicas.begin(), replicas.end(), replica) != replicas.end();
}

}  // namespace

Replica::Replica(Fabric& fabric, size_t tier, size_t index)
    : fabric_(fabric),
      tier_(fabric.scenario.tiers[tier]),
      tier_index_(tier),
      index_(index),
      cpu_(fabric.events, *this, DisciplineOf(tier_), tier_.workers) {
  Processor::Owner& owner = *this;
  for (const Stage& stage : tier_.stages) {
    const bool queues =
        stage.kind == Stage::Kind::kLock || stage.kind == Stage::Kind::kPool;
    stations_.push_back(
        queues ? std::make_unique<Processor>(
                     fabric.events, owner, Processor::Discipline::kFcfs,
                     stage.kind == Stage::Kind::kLock ? 1 : stage.size)
               : nullptr);
  }
  MakeGate();
  for (const scenario::Change& change : tier_.changes) {
    if (!Concerns(change.replicas, index_)) continue;
    Later(Instant(change.at), Event::kChange, 0);
    if (!change.speed) continue;
    for (Duration into = kRampStep; into < change.over + kRampStep;
         into += kRampStep) {
      Later(Instant(change.at + std::min(into, change.over)), Event::kChange,
            0);
    }
  }
  for (size_t i = 0; i < tier_.pauses.size(); ++i) {
    pauses_.emplace_back(scenario::Mix(fabric.seed) + 64 * index_ + i,
                         scenario::kPauses + tier_index_);
    if (!Concerns(tier_.pauses[i].replicas, index_)) continue;
    SchedulePause(i, tier_.pauses[i].first);
  }
}

double Replica::cpu_capacity() const {
  return moves() ? cpu_.workers() * speed_ : 0;
}

void Replica::Receive(Visit& visit) {
  if (!up_) {
    visit.reply = Reply::kError;
    fabric_.Answer(visit);
    return;
  }
  const Instant now = fabric_.events.now();
  visit.request.arrived = now;
  visit.next_here = first_;
  visit.previous_here = nullptr;
  if (first_ != nullptr) first_->previous_here = &visit;
  first_ = &visit;
  ++load_;

  const Decision decision =
      gate_ ? gate_->Offer(visit, now) : Decision{Verdict::kAdmit};
  Log(visit, decision);
  switch (decision.verdict) {
    case Verdict::kAdmit:
      Run(visit);
      break;
    case Verdict::kQueue:
      visit.state = Visit::State::kWaiting;
      break;
    case Verdict::kShed:
      Refuse(visit, decision);
      break;
  }
  if (gate_) gate_->Settle(now);
}

void Replica::RunWaiting(Visit& visit) {
  Log(visit, Decision{Verdict::kAdmit, Reason::kWaited, Duration{}});
  Run(visit);
}

void Replica::RefuseWaiting(Visit& visit, const Decision& decision) {
  Log(visit, decision);
  Refuse(visit, decision);
}

void Replica::Run(Visit& visit) {
  const Instant now = fabric_.events.now();
  visit.counted = gate_ != nullptr;
  level_.OnAdmitted(visit.request.criticality, now);
  visit.state = Visit::State::kRunning;
  visit.stage = 0;
  if (tier_index_ == 0) fabric_.metrics.OnAdmitted(visit, now);
  if (tier_.cancel_at_deadline && visit.request.deadline < kNever) {
    visit.deadline_timer =
        Later(visit.request.deadline, Event::kDeadline, visit.index);
  }
  if (tier_index_ == 0 && fabric_.scenario.proxy_timeout) {
    visit.proxy_timer = Later(now + *fabric_.scenario.proxy_timeout,
                              Event::kProxyTimeout, visit.index);
  }
  visit.failure = FailureOf(tier_, visit.request.resource, fabric_.seed,
                            tier_index_, visit.number, now.time_since_epoch());
  if (visit.failure != nullptr && visit.failure->after) {
    visit.timer =
        Later(now + *visit.failure->after, Event::kFailed, visit.index);
    return;
  }
  RunStage(visit);
}

void Replica::RunStage(Visit& visit) {
  for (; visit.stage < tier_.stages.size(); ++visit.stage) {
    const Duration demand = fabric_.DemandOf(visit);
    if (demand <= Duration{}) continue;
    const Stage& stage = tier_.stages[visit.stage];
    switch (stage.kind) {
      case Stage::Kind::kCpu:
        cpu_.Add(visit, demand);
        return;
      case Stage::Kind::kIo:
        visit.timer =
            Later(fabric_.events.now() + demand, Event::kIo, visit.index);
        return;
      case Stage::Kind::kLock:
      case Stage::Kind::kPool:
        stations_[visit.stage]->Add(visit, demand);
        return;
    }
  }
  if (visit.failure != nullptr) {
    Complete(visit, Reply::kError);
    return;
  }
  visit.state = Visit::State::kCalling;
  visit.call = 0;
  visit.calls_left = tier_.calls.empty() ? 0 : tier_.calls.front().times;
  Resume(visit);
}

void Replica::Resume(Visit& visit) {
  if (visit.reply == Reply::kOk && fabric_.CallNext(visit)) return;
  Complete(visit, visit.reply);
}

void Replica::OnWorkDone(Work& work, Instant) {
  auto& visit = static_cast<Visit&>(work);
  if (visit.state == Visit::State::kRefusing) {
    Leave(visit);
    return;
  }
  visit.spent += work.demand();
  ++visit.stage;
  RunStage(visit);
}

bool Replica::OnWorkTurn(Work& work, Instant since, Instant now) {
  auto& visit = static_cast<Visit&>(work);
  if (visit.turned || visit.state != Visit::State::kRunning) return true;
  visit.turned = true;
  if (!gate_ || !visit.counted || gate_->Turn(visit, now - since, now)) {
    return true;
  }
  TellEnd(visit, Outcome::kIgnored);
  const Decision decision{Verdict::kShed, Reason::kLevel, Duration{}};
  Log(visit, decision);
  Refuse(visit, decision);
  return false;
}

void Replica::Refuse(Visit& visit, const Decision& decision) {
  visit.reply = Reply::kShed;
  visit.retry_after = decision.retry_after;
  if (decision.reason == Reason::kLevel || decision.reason == Reason::kLimit) {
    level_.OnRefused(visit.request.criticality, fabric_.events.now());
  }
  fabric_.events.Cancel(visit.deadline_timer);
  // What is answered already is refused nothing.
  if (tier_index_ == 0 && visit.operation != kNone) {
    fabric_.metrics.OnShed(visit, fabric_.events.now());
  }
  if (tier_.reject_cost > Duration{}) {
    visit.state = Visit::State::kRefusing;
    cpu_.Add(visit, tier_.reject_cost, /*urgent=*/true);
    return;
  }
  Leave(visit);
}

void Replica::Complete(Visit& visit, Reply reply) {
  visit.reply = reply;
  if (visit.counted) {
    // A refusal from below is fast and says nothing about this service.
    const Outcome outcome = reply == Reply::kOk     ? Outcome::kOk
                            : reply == Reply::kShed ? Outcome::kIgnored
                                                    : Outcome::kError;
    TellEnd(visit, outcome);
  }
  Leave(visit);
}

// The gate's part of a visit that it let run is over.
void Replica::TellEnd(Visit& visit, Outcome outcome) {
  visit.counted = false;
  gate_->Finish(visit, outcome, fabric_.events.now());
}

void Replica::Leave(Visit& visit) {
  fabric_.events.Cancel(visit.deadline_timer);
  fabric_.events.Cancel(visit.timer);
  fabric_.events.Cancel(visit.proxy_timer);
  (visit.previous_here != nullptr ? visit.previous_here->next_here : first_) =
      visit.next_here;
  if (visit.next_here != nullptr) {
    visit.next_here->previous_here = visit.previous_here;
  }
  --load_;
  visit.state = Visit::State::kTravelling;
  if (fabric_.algorithm.tells_level) {
    visit.level =
        level_.Read(fabric_.events.now(), scenario::Mix(visit.number));
  }
  // Calls that are still open know this visit; the last one answers it.
  if (visit.calls_open == 0) fabric_.Answer(visit);
}

// Ends a visit wherever it is.
void Replica::Drop(Visit& visit, Reply reply, Outcome outcome) {
  const Instant now = fabric_.events.now();
  if (visit.state == Visit::State::kWaiting && gate_) {
    gate_->Cancel(visit, now);
  }
  if (visit.waiting() || visit.in_service()) {
    Processor& processor =
        visit.state == Visit::State::kRunning && stations_[visit.stage]
            ? *stations_[visit.stage]
            : cpu_;
    visit.spent += processor.Remove(visit);
  }
  if (visit.counted) {
    visit.counted = false;
    if (gate_) gate_->Finish(visit, outcome, now);
  }
  visit.reply = reply;
  Leave(visit);
}

void Replica::Abandon(Visit& visit) {
  // A service that works on past deadlines does not look whether its caller
  // is still there either; a gate forgets those that wait.
  if (visit.state == Visit::State::kWaiting ||
      (tier_.cancel_at_deadline && visit.state == Visit::State::kRunning)) {
    Drop(visit, Reply::kCancelled, Outcome::kCancelled);
    return;
  }
  fabric_.events.Cancel(visit.proxy_timer);
  if (tier_index_ == 0 && fabric_.scenario.seat == scenario::Seat::kProxy &&
      visit.counted && !gate_->inside()) {
    TellEnd(visit, Outcome::kCancelled);
  }
}

// The proxy waits no longer; the service does not know.
void Replica::GiveUp(Visit& visit) {
  if (visit.counted && !gate_->inside()) TellEnd(visit, Outcome::kTimedOut);
  fabric_.AnswerFor(visit);
}

Timer Replica::Later(Instant when, Event event, uint64_t index) {
  return fabric_.events.At(when, *this,
                           index << 8 | static_cast<uint64_t>(event));
}

void Replica::OnEvent(Instant now, uint64_t arg) {
  const uint64_t index = arg >> 8;
  switch (static_cast<Event>(arg & 0xff)) {
    case Event::kIo: {
      Visit& visit = fabric_.visits[static_cast<uint32_t>(index)];
      ++visit.stage;
      RunStage(visit);
      return;
    }
    case Event::kFailed:
      Complete(fabric_.visits[static_cast<uint32_t>(index)], Reply::kError);
      return;
    case Event::kProxyTimeout:
      GiveUp(fabric_.visits[static_cast<uint32_t>(index)]);
      return;
    case Event::kDeadline: {
      Visit& visit = fabric_.visits[static_cast<uint32_t>(index)];
      if (visit.state == Visit::State::kRunning) {
        Drop(visit, Reply::kCancelled, Outcome::kTimedOut);
      }
      return;
    }
    case Event::kChange:
      ApplyChanges();
      return;
    case Event::kPause: {
      const scenario::Pause& pause = tier_.pauses[index];
      ++stopped_;
      SetSpeeds();
      Later(now + pause.length, Event::kResume, index);
      return;
    }
    case Event::kResume: {
      --stopped_;
      SetSpeeds();
      const scenario::Pause& pause = tier_.pauses[index];
      if (pause.every == Duration{}) return;
      Duration gap = pause.every - pause.length;
      if (!pause.regular) {
        gap = FromSeconds(ToSeconds(gap) * pauses_[index].Exponential());
      }
      SchedulePause(index, now.time_since_epoch() + gap);
      return;
    }
  }
}

void Replica::SchedulePause(size_t pause, Duration start) {
  if (start >= fabric_.scenario.length()) return;
  Later(Instant(start), Event::kPause, pause);
}

void Replica::ApplyChanges() {
  const scenario::ReplicaState state = scenario::ReplicaAt(
      tier_, index_, fabric_.events.now().time_since_epoch());
  const bool up = state.workers > 0;
  if (up_ && !up) {
    up_ = false;
    gate_.reset();
    while (first_ != nullptr) Drop(*first_, Reply::kError, Outcome::kIgnored);
  } else if (!up_ && up) {
    up_ = true;
    MakeGate();
  }
  if (state.workers != cpu_.workers()) cpu_.SetWorkers(state.workers);
  speed_ = state.speed;
  SetSpeeds();
}

void Replica::SetSpeeds() {
  cpu_.SetSpeed(moves() ? speed_ : 0);
  for (const auto& station : stations_) {
    if (station) station->SetSpeed(moves() ? 1 : 0);
  }
  fabric_.CapacityChanged();
}

void Replica::MakeGate() {
  if (!tier_.guard) return;
  gate_ = fabric_.algorithm.make(
      {fabric_.scenario, tier_index_, index_,
       scenario::Mix(scenario::Mix(fabric_.seed) + 1024 * tier_index_ + index_),
       fabric_.events, *this});
}

void Replica::Log(const Visit& visit, const Decision& decision) {
  if (fabric_.log == nullptr) return;
  fabric_.log->Add({fabric_.events.now().time_since_epoch().count(),
                    visit.number, visit.tier, visit.replica, decision.verdict,
                    decision.reason});
}

}  // namespace weir::sim
