#include "fabric.h"

#include <algorithm>

#include "fleet.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/random.h"
#include "weir/scenario/service_time.h"

namespace weir::sim {

using scenario::Stage;

namespace {

enum Way : uint64_t { kThere = 0, kBack = 1, kAgain = 2 };
constexpr uint64_t kWays = 4;

// Numbers of the calls that an attempt makes; those of attempts themselves
// are small.
uint64_t ChildNumber(uint64_t parent, size_t tier, uint32_t ordinal) {
  return scenario::Mix(parent ^ scenario::Mix(tier << 32 | ordinal));
}

Duration LongestDeadline(const scenario::Scenario& scenario) {
  Duration longest{};
  for (const scenario::Class& cls : scenario.classes) {
    longest = std::max(longest, cls.deadline);
  }
  return longest;
}

bool Queues(const Stage& stage) { return stage.kind != Stage::Kind::kIo; }

// One resource for the cpu of each tier, tier 0 first, then one for each lock
// and pool.
size_t CountResources(const scenario::Scenario& scenario) {
  size_t count = scenario.tiers.size();
  for (const scenario::Tier& tier : scenario.tiers) {
    for (const Stage& stage : tier.stages) {
      if (Queues(stage) && stage.kind != Stage::Kind::kCpu) ++count;
    }
  }
  return std::min(count, kMaxResourcesOfOracle);
}

}  // namespace

Fabric::Fabric(const scenario::Scenario& s, const Algorithm& a,
               const RunOptions& options)
    : scenario(s),
      algorithm(a),
      seed(options.seed),
      log(options.log),
      metrics(s, options.seed, options.bin),
      prompter({s, options.seed, CountResources(s), LongestDeadline(s), events},
               metrics, s.clients.closed.empty() ? options.script : nullptr) {
  uint32_t next = static_cast<uint32_t>(s.tiers.size());
  for (size_t tier = 0; tier < s.tiers.size(); ++tier) {
    std::vector<uint32_t>& resources = resources_.emplace_back();
    bool varies = false;
    for (const Stage& stage : s.tiers[tier].stages) {
      const bool own = Queues(stage) && stage.kind != Stage::Kind::kCpu;
      resources.push_back(stage.kind == Stage::Kind::kCpu
                              ? static_cast<uint32_t>(tier)
                          : own ? next++
                                : kNone);
    }
    for (const scenario::Change& change : s.tiers[tier].changes) {
      varies = varies || change.time || change.slow_ratio;
    }
    varies_.push_back(varies);
  }
  for (size_t tier = 0; tier < s.tiers.size(); ++tier) {
    fleets.push_back(std::make_unique<Fleet>(*this, tier));
  }
  CapacityChanged();
}

Fabric::~Fabric() = default;

Demand Fabric::DrawDemand(size_t tier, uint64_t number, uint16_t route) const {
  Demand demands{};
  for (size_t i = 0; i < scenario.tiers[tier].stages.size(); ++i) {
    demands[i] = DrawStage(tier, i, number, route, events.now());
  }
  return demands;
}

Duration Fabric::DrawStage(size_t tier, size_t stage, uint64_t number,
                           uint16_t route, Instant at) const {
  const scenario::Tier& t = scenario.tiers[tier];
  if (!Takes(t.stages[stage], route, seed, tier, stage, number)) {
    return Duration(-1);
  }
  if (!varies_[tier]) {
    return DrawFor(t.stages[stage].time, seed, tier, stage, number);
  }
  return DrawFor(SpanAt(t, stage, at.time_since_epoch()), seed, tier, stage,
                 number);
}

Duration Fabric::DemandOf(const Visit& visit) {
  if (visit.parent == kNone && visit.attempt == 0 && visit.operation != kNone) {
    return operations[visit.operation].demand[visit.stage];
  }
  return DrawStage(visit.tier, visit.stage, visit.number,
                   visit.request.resource, visit.sent);
}

Need Fabric::Foresee(size_t tier, uint64_t number, uint16_t route,
                     const Demand& demand) const {
  const scenario::Tier& t = scenario.tiers[tier];
  Need need;
  need.latency =
      DrawDelay(tier, number, kThere) + DrawDelay(tier, number, kBack);
  for (size_t i = 0; i < t.stages.size(); ++i) {
    if (demand[i] < Duration{}) continue;
    need.latency += demand[i];
    const uint32_t resource = resources_[tier][i];
    if (resource == kNone || resource >= kMaxResourcesOfOracle) continue;
    need.work += demand[i];
    need.of[resource] += demand[i];
    need.used |= uint32_t{1} << resource;
  }
  if (FailureOf(t, route, seed, tier, number,
                events.now().time_since_epoch()) != nullptr) {
    // Nobody could answer it in time.
    need.latency += std::chrono::hours(24);
  }
  uint32_t ordinal = 0;
  for (const scenario::Call& call : t.calls) {
    Need all;
    for (int32_t k = 0; k < call.times; ++k) {
      const uint64_t child = ChildNumber(number, call.tier, ordinal++);
      const Need one =
          Foresee(call.tier, child, route, DrawDemand(call.tier, child, route));
      if (call.parallel) {
        all.Beside(one);
      } else {
        all.Then(one);
      }
    }
    need.Then(all);
  }
  return need;
}

double Fabric::MeanWork(size_t tier) const {
  const scenario::Tier& t = scenario.tiers[tier];
  const Duration at = events.now().time_since_epoch();
  size_t phase = 0;
  while (phase + 1 < scenario.phases.size() &&
         scenario.PhaseStart(phase + 1) <= at) {
    ++phase;
  }
  const std::vector<double>& mix = scenario.phases[phase].mix;
  const auto share = [&](uint16_t route) {
    return mix.empty() ? scenario.routes[route].share : mix[route];
  };
  double work = 0;
  for (size_t i = 0; i < t.stages.size(); ++i) {
    const Stage& stage = t.stages[i];
    if (!Queues(stage)) continue;
    work += stage.ratio * (stage.route ? share(*stage.route) : 1) *
            scenario::MeanSeconds(SpanAt(t, i, at));
  }
  for (const scenario::Call& call : t.calls) {
    work += call.times * MeanWork(call.tier);
  }
  return work;
}

Duration Fabric::DrawDelay(size_t tier, uint64_t number, uint64_t way) const {
  const scenario::Span& span = scenario.tiers[tier].network;
  if (span.mean == Duration{} &&
      span.distribution == scenario::Span::Distribution::kConstant) {
    return {};
  }
  scenario::Random random(scenario::Mix(seed) + 2 * number + way,
                          scenario::kNetwork + tier);
  return Draw(span, random);
}

void Fabric::Send(Visit& visit) {
  Fleet& fleet = *fleets[visit.tier];
  visit.replica = static_cast<uint16_t>(fleet.Choose());
  visit.state = Visit::State::kTravelling;
  visit.reply = Reply::kOk;
  visit.retry_after = visit.spent = Duration{};
  visit.never_retry = false;
  visit.level.reset();
  visit.counted = visit.turned = visit.abandoned = false;
  visit.call = 0;
  visit.calls_left = visit.calls_open = 0;
  fleet.OnSent(visit.replica);
  const Duration delay = DrawDelay(visit.tier, visit.number, kThere);
  if (delay == Duration{}) {
    fleet[visit.replica].Receive(visit);
  } else {
    visit.timer = events.After(delay, *this, visit.index * kWays + kThere);
  }
}

void Fabric::Answer(Visit& visit) {
  const Duration delay = DrawDelay(visit.tier, visit.number, kBack);
  if (delay == Duration{}) {
    Deliver(visit);
  } else {
    visit.timer = events.After(delay, *this, visit.index * kWays + kBack);
  }
}

void Fabric::Abandon(Visit& visit) {
  visit.abandoned = true;
  if (visit.state == Visit::State::kTravelling) return;
  (*fleets[visit.tier])[visit.replica].Abandon(visit);
}

void Fabric::OnEvent(Instant, uint64_t arg) {
  Visit& visit = visits[static_cast<uint32_t>(arg / kWays)];
  switch (arg % kWays) {
    case kThere:
      (*fleets[visit.tier])[visit.replica].Receive(visit);
      return;
    case kBack:
      Deliver(visit);
      return;
    case kAgain:
      SendCall(visits[visit.parent], visit);
      return;
  }
}

void Fabric::AnswerFor(Visit& visit) {
  Visit& answer = visits.Take();
  const uint32_t index = answer.index;
  answer.operation = visit.operation;
  answer.parent = kNone;
  answer.attempt = visit.attempt;
  answer.tier = visit.tier;
  answer.cls = visit.cls;
  answer.replica = visit.replica;
  answer.number = visit.number;
  answer.request = visit.request;
  answer.sent = visit.sent;
  answer.ticket = visit.ticket;
  answer.state = Visit::State::kTravelling;
  answer.reply = Reply::kError;
  answer.retry_after = answer.spent = Duration{};
  answer.never_retry = false;
  answer.level.reset();
  answer.abandoned = false;
  for (uint32_t& live : operations[visit.operation].live) {
    if (live == visit.index) live = index;
  }
  visit.operation = kNone;
  Answer(answer);
}

void Fabric::Deliver(Visit& visit) {
  if (visit.parent == kNone && visit.operation == kNone) {
    metrics.OnSpent(visit.spent, false);
    visits.Return(visit);
    return;
  }
  fleets[visit.tier]->OnAnswered(visit.replica, visit.reply == Reply::kError);
  if (visit.parent == kNone) {
    entry->OnAnswer(visit);
  } else {
    OnChildAnswer(visits[visit.parent], visit);
  }
}

bool Fabric::CallNext(Visit& parent) {
  const std::vector<scenario::Call>& calls = scenario.tiers[parent.tier].calls;
  while (parent.call < calls.size()) {
    const scenario::Call& call = calls[parent.call];
    if (parent.calls_left == 0 && parent.calls_open == 0) {
      ++parent.call;
      if (parent.call < calls.size()) {
        parent.calls_left = calls[parent.call].times;
      }
      continue;
    }
    const int32_t now =
        call.parallel ? parent.calls_left : std::min(parent.calls_left, 1);
    if (now == 0 || (!call.parallel && parent.calls_open > 0)) return true;
    uint32_t ordinal = 0;
    for (size_t i = 0; i < parent.call; ++i) {
      ordinal += static_cast<uint32_t>(calls[i].times);
    }
    ordinal += static_cast<uint32_t>(call.times - parent.calls_left);
    // A callee may answer at once: all are counted as open before the first.
    parent.calls_left -= now;
    parent.calls_open += now;
    for (int32_t k = 0; k < now; ++k) {
      MakeCall(parent, call.tier, ordinal + static_cast<uint32_t>(k));
    }
    return true;
  }
  return false;
}

void Fabric::MakeCall(Visit& parent, size_t tier, uint32_t ordinal) {
  Visit& child = visits.Take();
  child.operation = parent.operation;
  child.parent = parent.index;
  child.attempt = parent.attempt;
  child.tier = static_cast<uint16_t>(tier);
  child.cls = parent.cls;
  child.number = ChildNumber(parent.number, tier, ordinal);
  child.request = parent.request;
  if (Guarded(tier)) {
    child.client_call = {.criticality = parent.request.criticality,
                         .client = parent.request.client,
                         .deadline = parent.request.deadline};
  }
  SendCall(parent, child);
}

// The first attempt of a call, or a further one.
void Fabric::SendCall(Visit& parent, Visit& child) {
  if (Guarded(child.tier)) {
    // Whoever asked has been dropped while its call waited to be made again.
    const bool wanted = parent.state == Visit::State::kCalling;
    if (!wanted || !CallerOf(parent, child.tier)
                        .Begin(child.client_call, child, Duration::max() / 4,
                               events.now())) {
      child.reply = wanted ? Reply::kShed : Reply::kCancelled;
      child.retry_after = child.spent = Duration{};
      child.never_retry = true;
      EndCall(parent, child);
      return;
    }
    if (child.client_call.attempts > 1)
      child.number = scenario::Mix(child.number);
  }
  child.request.attempt =
      static_cast<uint8_t>(std::clamp(child.client_call.attempts - 1, 0, 255));
  child.sent = events.now();
  Send(child);
}

bool Fabric::Guarded(size_t tier) const {
  return algorithm.callers.kind == CallerSide::Kind::kGuard &&
         (scenario.tiers[tier].client_guard ||
          (tier == 0 && algorithm.callers.everywhere));
}

GuardCaller& Fabric::CallerOf(const Visit& parent, size_t tier) {
  std::unique_ptr<GuardCaller>& caller =
      callers_[{tier, parent.tier, parent.replica}];
  if (!caller) {
    std::shared_ptr<RetryAllowance>& allowance =
        allowances_[{parent.tier, parent.replica}];
    if (!allowance) {
      allowance = std::make_shared<RetryAllowance>(scenario.callers.allowance);
    }
    caller = std::make_unique<GuardCaller>(
        scenario.callers, allowance,
        scenario::Mix(seed ^
                      scenario::Mix(tier << 32 | uint64_t{parent.tier} << 16 |
                                    parent.replica)));
  }
  return *caller;
}

// The parent's replica goes on when the last open call is answered, so a
// visit that is dropped meanwhile stays in the pool until then.
void Fabric::OnChildAnswer(Visit& parent, Visit& child) {
  parent.spent += child.spent;
  if (Guarded(child.tier)) {
    const Next next = CallerOf(parent, child.tier)
                          .End(child.client_call, child, events.now());
    if (next.step == Next::Step::kRetry &&
        parent.state == Visit::State::kCalling) {
      child.timer = events.At(next.at, *this, child.index * kWays + kAgain);
      return;
    }
    child.never_retry = next.never_retry_above;
  }
  EndCall(parent, child);
}

void Fabric::EndCall(Visit& parent, Visit& child) {
  if (child.reply != Reply::kOk && parent.reply == Reply::kOk) {
    parent.reply = child.reply == Reply::kShed ? Reply::kShed : Reply::kError;
    parent.retry_after = child.retry_after;
    parent.never_retry = child.never_retry;
  }
  visits.Return(child);
  if (--parent.calls_open > 0) return;
  if (parent.state == Visit::State::kCalling) {
    (*fleets[parent.tier])[parent.replica].Resume(parent);
  } else {
    Answer(parent);
  }
}

void Fabric::CapacityChanged() {
  if (fleets.size() < scenario.tiers.size()) return;  // Still being built.
  if (prompter.reads()) {
    prompter.Advance();
    return;
  }
  for (size_t tier = 0; tier < fleets.size(); ++tier) {
    double cpu = 0;
    double moving = 0;
    for (size_t r = 0; r < fleets[tier]->size(); ++r) {
      cpu += (*fleets[tier])[r].cpu_capacity();
      moving += (*fleets[tier])[r].moves() ? 1 : 0;
    }
    prompter.SetCapacity(tier, cpu);
    for (size_t i = 0; i < resources_[tier].size(); ++i) {
      const Stage& stage = scenario.tiers[tier].stages[i];
      const uint32_t resource = resources_[tier][i];
      if (stage.kind == Stage::Kind::kCpu || resource == kNone ||
          resource >= kMaxResourcesOfOracle) {
        continue;
      }
      const int32_t size = stage.kind == Stage::Kind::kPool ? stage.size : 1;
      prompter.SetCapacity(resource, moving * size);
    }
  }
}

double Fabric::limit() const {
  double sum = 0;
  for (size_t r = 0; r < fleets[0]->size(); ++r) sum += (*fleets[0])[r].limit();
  return sum;
}

int64_t Fabric::waiting() const {
  int64_t sum = 0;
  for (size_t r = 0; r < fleets[0]->size(); ++r) {
    sum += (*fleets[0])[r].waiting();
  }
  return sum;
}

}  // namespace weir::sim
