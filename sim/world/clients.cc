#include "clients.h"

#include <algorithm>
#include <utility>

#include "weir/scenario/random.h"
#include "weir/scenario/service_time.h"

namespace weir::sim {

using scenario::Ending;

namespace {

// Most retries that a budget saves up while nothing fails.
// Source: [gRPC-A6], maxTokens in its example.
constexpr double kBudgetBurst = 10;

}  // namespace

Clients::Clients(Fabric& fabric)
    : fabric_(fabric),
      retries_(fabric.scenario.retries),
      law_random_(scenario::Mix(fabric.seed), scenario::kCallers),
      budget_(kBudgetBurst) {
  MakeProcesses();
  MakeClosed();
  ScheduleArrival();
}

void Clients::MakeClosed() {
  for (const scenario::ClosedClients& rules : fabric_.scenario.clients.closed) {
    closed_.insert(closed_.end(), static_cast<size_t>(rules.count),
                   ClosedClient{&rules});
  }
  first_closed_ = static_cast<uint32_t>(fabric_.scenario.ClientCount()) -
                  static_cast<uint32_t>(closed_.size());
  for (size_t i = 0; i < closed_.size(); ++i) {
    Think(i, true, Instant(closed_[i].rules->from));
  }
}

// Above those that arrive, and below the number of an attempt.
uint64_t Clients::ClosedNumber(size_t index) const {
  return uint64_t{1} << 47 | uint64_t{index} << 27 | closed_[index].asked;
}

void Clients::Think(size_t index, bool first, Instant now) {
  const scenario::ClosedClients& rules = *closed_[index].rules;
  scenario::Random random(scenario::Mix(fabric_.seed) + ClosedNumber(index),
                          scenario::kThinking);
  // They are not all of one mind: each has thought for a while already.
  const double share = rules.exponential ? random.Exponential()
                       : first           ? random.Uniform()
                                         : 1;
  const Instant end(std::min(rules.until.value_or(fabric_.scenario.length()),
                             fabric_.scenario.length()));
  const Instant at = now + FromSeconds(ToSeconds(rules.think) * share);
  if (at >= end) return;
  fabric_.events.At(
      at, *this, uint64_t{index} << 8 | static_cast<uint64_t>(Event::kThought));
}

void Clients::Ask(size_t index, Instant now) {
  scenario::Arrival arrival;
  arrival.at = now.time_since_epoch();
  arrival.number = ClosedNumber(index);
  arrival.client = first_closed_ + static_cast<uint32_t>(index);
  arrival.cls = static_cast<uint16_t>(closed_[index].rules->cls);
  while (fabric_.scenario.PhaseStart(phase_ + 1) <= arrival.at) ++phase_;
  arrival.phase = static_cast<uint16_t>(phase_);
  scenario::Random random(scenario::Mix(fabric_.seed) + arrival.number,
                          scenario::kAttributes);
  double left = random.Uniform();
  const auto& routes = fabric_.scenario.routes;
  const std::vector<double>& mix = fabric_.scenario.phases[phase_].mix;
  const auto share = [&](uint16_t route) {
    return mix.empty() ? routes[route].share : mix[route];
  };
  while (arrival.route + size_t{1} < routes.size() &&
         left >= share(arrival.route)) {
    left -= share(arrival.route++);
  }
  ++closed_[index].asked;
  Begin(arrival, now);
}

void Clients::MakeProcesses() {
  const scenario::CallerRules& rules = fabric_.scenario.callers;
  const CallerSide& side = fabric_.algorithm.callers;
  for (int32_t i = 0; i < rules.processes; ++i) {
    if (fabric_.Guarded(0)) {
      guards_.push_back(std::make_unique<GuardCaller>(
          rules, std::make_shared<RetryAllowance>(rules.allowance),
          scenario::Mix(fabric_.seed ^
                        scenario::Mix(scenario::kCallers + uint64_t(i)))));
    } else if (side.kind == CallerSide::Kind::kLaw) {
      laws_.push_back(side.law->make({}));
    }
  }
}

size_t Clients::ProcessOf(const Operation& operation) const {
  const uint64_t processes = std::max(guards_.size(), laws_.size());
  return scenario::Mix(operation.arrival.client) % processes;
}

// Whether an attempt may leave its process.
bool Clients::MayBegin(Operation& operation, Visit& visit, Instant now) {
  if (Guarded(operation)) {
    return guards_[ProcessOf(operation)]->Begin(
        operation.call, visit, visit.request.deadline - now, now);
  }
  return !UnderLaw(operation) ||
         laws_[ProcessOf(operation)].Admit(
             {.now = now,
              .criticality = visit.request.criticality,
              .client = visit.request.client,
              .attempt = static_cast<int32_t>(visit.attempt),
              .draw = law_random_.Next()});
}

void Clients::AfterDrop(Operation& operation, Instant now) {
  fabric_.metrics.OnHeld(operation, now);
  operation.refused = true;
  if (operation.open > 0 && operation.live[0] != kNone) return;
  if (Guarded(operation)) {
    operation.given_up = true;
    EndIfDone(operation, now);
  } else {
    AfterFailure(operation, retries_.on_shed, {}, now);
  }
}

// Does what the client guard said.
void Clients::Follow(Operation& operation, const Next& next, Instant now) {
  switch (next.step) {
    case Next::Step::kRetry:
      if (operation.answered) break;
      operation.timer = Later(next.at, Event::kRetry, operation);
      return;
    case Next::Step::kWait:
      break;
    case Next::Step::kDone:
    case Next::Step::kGiveUp:
      operation.given_up = true;
      break;
  }
  EndIfDone(operation, now);
}

void Clients::Learn(const Operation& operation, const Visit& visit,
                    Outcome outcome, bool refused, Instant now) {
  if (!UnderLaw(operation)) return;
  laws_[ProcessOf(operation)].Learn(
      {.now = now,
       .latency = now - visit.sent,
       .outcome = outcome,
       .refused = refused,
       .criticality = visit.request.criticality,
       .attempt = static_cast<int32_t>(visit.attempt)});
}

Timer Clients::Later(Instant when, Event event, const Operation& operation) {
  return fabric_.events.At(
      when, *this,
      uint64_t{operation.index} << 8 | static_cast<uint64_t>(event));
}

void Clients::ScheduleArrival() {
  const std::optional<scenario::Arrival> arrival = fabric_.prompter.Next();
  if (!arrival) return;
  next_ = *arrival;
  fabric_.events.At(Instant(next_.at), *this,
                    static_cast<uint64_t>(Event::kArrival));
}

void Clients::OnEvent(Instant now, uint64_t arg) {
  const auto event = static_cast<Event>(arg & 0xff);
  if (event == Event::kArrival) {
    const scenario::Arrival arrival = next_;
    ScheduleArrival();
    Begin(arrival, now);
    return;
  }
  if (event == Event::kThought) {
    Ask(static_cast<size_t>(arg >> 8), now);
    return;
  }
  Operation& operation = fabric_.operations[static_cast<uint32_t>(arg >> 8)];
  switch (event) {
    case Event::kArrival:
    case Event::kThought:
      return;
    case Event::kTimeout:
      OnTimeout(operation, now);
      return;
    case Event::kRetry:
      if (!operation.answered) {
        Attempt(operation);
      } else {
        EndIfDone(operation, now);
      }
      return;
    case Event::kHedge:
      if (operation.answered || operation.given_up) return;
      if (Guarded(operation) &&
          !guards_[ProcessOf(operation)]->MayHedge(operation.call, now)) {
        return;
      }
      Attempt(operation);
      return;
  }
}

void Clients::Expect(uint64_t arg) {
  const auto event = static_cast<Event>(arg & 0xff);
  if (event == Event::kArrival || event == Event::kThought) return;
  const auto* operation = reinterpret_cast<const char*>(
      &fabric_.operations[static_cast<uint32_t>(arg >> 8)]);
  // Its first two cache lines: what does not stand there is seldom needed.
  __builtin_prefetch(operation, 1);
  __builtin_prefetch(operation + 64, 1);
}

void Clients::Begin(const scenario::Arrival& arrival, Instant now) {
  Operation& operation = fabric_.operations.Take();
  const uint32_t index = operation.index;
  operation = Operation{};
  operation.index = index;
  operation.used = true;
  operation.arrival = arrival;
  operation.started = now;
  fabric_.metrics.OnArrival(operation);
  if (!fabric_.prompter.Recall(operation)) {
    operation.demand = fabric_.DrawDemand(0, arrival.number, arrival.route);
    const Need need =
        fabric_.Foresee(0, arrival.number, arrival.route, operation.demand);
    operation.work = need.work;
    fabric_.prompter.Tell(operation, need,
                          fabric_.scenario.classes[arrival.cls].deadline);
  }
  budget_ = std::min(budget_ + retries_.budget_ratio, kBudgetBurst);
  if (Guarded(operation)) {
    const std::optional<Duration>& patience = fabric_.scenario.patience;
    operation.call = {
        .criticality = fabric_.scenario.classes[arrival.cls].criticality,
        .deadline = patience ? now + *patience : kNever};
  }
  Attempt(operation);
}

void Clients::Attempt(Operation& operation) {
  const Instant now = fabric_.events.now();
  const scenario::Arrival& arrival = operation.arrival;
  const scenario::Class& cls = fabric_.scenario.classes[arrival.cls];
  Visit& visit = fabric_.visits.Take();
  visit.operation = operation.index;
  visit.parent = kNone;
  visit.attempt = operation.attempts++;
  visit.tier = 0;
  visit.cls = arrival.cls;
  visit.number = scenario::AttemptNumber(arrival.number, visit.attempt);
  visit.sent = now;
  visit.request.resource = arrival.route;
  visit.request.criticality = cls.criticality;
  visit.request.client = scenario::Mix(arrival.client + uint64_t{1});
  visit.request.arrived = now;
  visit.request.attempt = static_cast<uint8_t>(std::min(visit.attempt, 255u));
  visit.request.deadline = now + cls.deadline;
  if (!MayBegin(operation, visit, now)) {
    fabric_.visits.Return(visit);
    AfterDrop(operation, now);
    return;
  }
  operation.live = {visit.index, operation.live[0]};
  ++operation.open;
  fabric_.metrics.OnAttempt(visit, operation);

  const bool hedges =
      fabric_.scenario.hedging.after > Duration{} && visit.attempt == 0;
  if (hedges) {
    operation.hedge =
        Later(now + fabric_.scenario.hedging.after, Event::kHedge, operation);
  }
  // Nobody acts on a timeout when there is nothing left to do, and nobody to
  // see it.
  if ((retries_.count > 0 && retries_.on_timeout) || Guarded(operation) ||
      fabric_.scenario.seat == scenario::Seat::kProxy || UnderLaw(operation) ||
      arrival.client >= first_closed_) {
    fabric_.events.Cancel(operation.timer);
    operation.timer =
        fabric_.events.InOrder(now + fabric_.scenario.timeout, *this,
                               uint64_t{operation.index} << 8 |
                                   static_cast<uint64_t>(Event::kTimeout));
  }
  fabric_.Send(visit);
}

void Clients::OnTimeout(Operation& operation, Instant now) {
  operation.late = true;
  Next next;
  for (uint32_t& live : operation.live) {
    const uint32_t index = std::exchange(live, kNone);
    if (index == kNone) continue;
    Visit& visit = fabric_.visits[index];
    if (Guarded(operation)) {
      next = guards_[ProcessOf(operation)]->TimeOut(operation.call, visit, now);
    }
    Learn(operation, visit, Outcome::kTimedOut, false, now);
    fabric_.Abandon(visit);
  }
  if (Guarded(operation)) {
    Follow(operation, next, now);
  } else {
    AfterFailure(operation, retries_.on_timeout, {}, now);
  }
}

void Clients::OnAnswer(Visit& visit) {
  const Instant now = fabric_.events.now();
  Operation& operation = fabric_.operations[visit.operation];
  const bool ok = visit.reply == Reply::kOk;
  const bool good = ok && now <= visit.request.deadline && !operation.answered;
  const bool abandoned = visit.abandoned;
  const Reply reply = visit.reply;
  const Duration retry_after = visit.retry_after;
  if (ok) fabric_.metrics.OnAnswer(visit, operation, good, now);
  fabric_.metrics.OnSpent(visit.spent, good);
  Next next;
  if (Guarded(operation)) {
    next = guards_[ProcessOf(operation)]->End(operation.call, visit, now);
  } else if (!abandoned) {
    Learn(operation, visit,
          !ok                             ? Outcome::kError
          : now <= visit.request.deadline ? Outcome::kOk
                                          : Outcome::kTimedOut,
          reply == Reply::kShed, now);
  }
  --operation.open;
  std::replace(operation.live.begin(), operation.live.end(), visit.index,
               kNone);
  fabric_.visits.Return(visit);

  if (good) operation.answered = true;
  if (ok && !good) operation.late = true;
  if (ok && !abandoned) {
    // An answer ends it, in time or not.
    operation.given_up = true;
    fabric_.events.Cancel(operation.timer);
    fabric_.events.Cancel(operation.hedge);
  } else if (!abandoned && operation.live[0] == kNone &&
             operation.live[1] == kNone) {
    fabric_.events.Cancel(operation.timer);
    fabric_.events.Cancel(operation.hedge);
    operation.refused = reply == Reply::kShed;
    if (Guarded(operation)) {
      Follow(operation, next, now);
      return;
    }
    AfterFailure(operation,
                 reply == Reply::kShed ? retries_.on_shed : retries_.on_error,
                 retry_after, now);
    return;
  }
  EndIfDone(operation, now);
}

void Clients::AfterFailure(Operation& operation, bool may_retry,
                           Duration at_least, Instant now) {
  if (may_retry && !operation.answered && !operation.given_up) {
    std::optional<Duration> wait = NextBackoff(operation);
    if (wait && Cooperative(operation.arrival.client)) {
      wait = std::max(*wait, at_least);
    }
    const std::optional<Duration>& patience = fabric_.scenario.patience;
    if (wait && (!patience || now + *wait <= operation.started + *patience) &&
        SpendBudget()) {
      operation.timer = Later(now + *wait, Event::kRetry, operation);
      return;
    }
  }
  operation.given_up = true;
  EndIfDone(operation, now);
}

// Callers in a row are a counter of which each digit runs from 0 to the
// number of retries: the innermost layer tries again until it has no retry
// left; then the next one does, and the inner one begins anew.
std::optional<Duration> Clients::NextBackoff(Operation& operation) {
  for (int32_t layer = 0; layer < retries_.layers; ++layer) {
    uint8_t& made = operation.retries[static_cast<size_t>(layer)];
    if (made == retries_.count) {
      made = 0;
      continue;
    }
    double wait = ToSeconds(retries_.backoff);
    for (int i = 0; i < made; ++i) wait *= retries_.factor;
    wait = std::min(wait, ToSeconds(retries_.ceiling));
    scenario::Random random(
        scenario::Mix(fabric_.seed) +
            scenario::AttemptNumber(operation.arrival.number,
                                    operation.attempts),
        scenario::kRetries);
    wait *= 1 - retries_.jitter * random.Uniform();
    ++made;
    return FromSeconds(wait);
  }
  return std::nullopt;
}

bool Clients::SpendBudget() {
  if (retries_.budget_ratio == 0) return true;
  if (budget_ < 1) return false;
  budget_ -= 1;
  return true;
}

void Clients::EndIfDone(Operation& operation, Instant now) {
  if (!operation.given_up && !operation.answered) return;
  if (!operation.ended) {
    operation.ended = true;
    fabric_.metrics.OnEnded(operation,
                            operation.answered  ? Ending::kGood
                            : operation.late    ? Ending::kLate
                            : operation.refused ? Ending::kShed
                                                : Ending::kFailed,
                            now);
    if (operation.arrival.client >= first_closed_) {
      Think(operation.arrival.client - first_closed_, false, now);
    }
  }
  if (operation.open > 0) return;
  fabric_.events.Cancel(operation.timer);
  fabric_.events.Cancel(operation.hedge);
  operation.used = false;
  fabric_.operations.Return(operation);
}

uint64_t Clients::EndAll(Instant now) {
  uint64_t open = 0;
  fabric_.operations.ForEach([&](Operation& operation) {
    if (!operation.used) return;
    open += operation.open;
    if (operation.ended) return;
    operation.late = true;
    operation.given_up = true;
    EndIfDone(operation, now);
  });
  return open;
}

bool Clients::Cooperative(uint32_t client) const {
  return LuckOf(client) < fabric_.scenario.clients.cooperative_ratio;
}

bool Clients::Careful(const Operation& operation) const {
  return LuckOf(operation.arrival.client) < fabric_.scenario.callers.share;
}

// A number in [0, 1) of its own: the first clients to carry a guard are the
// first to obey Retry-After too.
double Clients::LuckOf(uint32_t client) {
  return static_cast<double>(scenario::Mix(client) >> 11) * 0x1p-53;
}

}  // namespace weir::sim
