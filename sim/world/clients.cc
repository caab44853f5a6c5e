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
      arrivals_(fabric.scenario, fabric.seed),
      budget_(kBudgetBurst) {
  ScheduleArrival();
}

Timer Clients::Later(Instant when, Event event, const Operation& operation) {
  return fabric_.events.At(
      when, *this,
      uint64_t{operation.index} << 8 | static_cast<uint64_t>(event));
}

void Clients::ScheduleArrival() {
  const std::optional<scenario::Arrival> arrival = arrivals_.Next();
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
  Operation& operation = fabric_.operations[static_cast<uint32_t>(arg >> 8)];
  switch (event) {
    case Event::kArrival:
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
      if (!operation.answered) Attempt(operation);
      return;
  }
}

void Clients::Begin(const scenario::Arrival& arrival, Instant now) {
  Operation& operation = fabric_.operations.Take();
  const uint32_t index = operation.index;
  operation = Operation{};
  operation.index = index;
  operation.used = true;
  operation.arrival = arrival;
  operation.started = now;
  operation.demand = fabric_.DrawDemand(0, arrival.number, arrival.route);
  const Need need =
      fabric_.Foresee(0, arrival.number, arrival.route, operation.demand);
  operation.work = need.work;
  const Duration budget = fabric_.scenario.classes[arrival.cls].deadline;
  fabric_.metrics.OnArrival(operation);
  fabric_.oracle.Arrive(arrival.cls, need, budget, now.time_since_epoch());
  budget_ = std::min(budget_ + retries_.budget_ratio, kBudgetBurst);
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
  visit.demand = visit.attempt == 0
                     ? operation.demand
                     : fabric_.DrawDemand(0, visit.number, arrival.route);
  visit.sent = now;
  visit.request.resource = arrival.route;
  visit.request.criticality = cls.criticality;
  visit.request.client = scenario::Mix(arrival.client + uint64_t{1});
  visit.request.arrived = now;
  visit.request.deadline = now + cls.deadline;
  operation.live = {visit.index, operation.live[0]};
  ++operation.open;
  fabric_.metrics.OnAttempt(visit, operation);

  const bool hedges =
      fabric_.scenario.hedging.after > Duration{} && visit.attempt == 0;
  if (hedges) {
    operation.hedge =
        Later(now + fabric_.scenario.hedging.after, Event::kHedge, operation);
  }
  // Nobody acts on a timeout when there is nothing left to do.
  if (retries_.count > 0 && retries_.on_timeout) {
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
  for (uint32_t& live : operation.live) {
    const uint32_t index = std::exchange(live, kNone);
    if (index != kNone) fabric_.Abandon(fabric_.visits[index]);
  }
  AfterFailure(operation, retries_.on_timeout, {}, now);
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
  const double ratio = fabric_.scenario.clients.cooperative_ratio;
  return static_cast<double>(scenario::Mix(client) >> 11) * 0x1p-53 < ratio;
}

}  // namespace weir::sim
