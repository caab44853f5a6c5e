// Guard: the stages that a policy may add, stale to system.  They are skipped
// by one test of a bit mask for resources that have none of them.

#include <algorithm>

#include "relaxed.h"
#include "weir/guard.h"
#include "weir/splitmix64.h"

namespace weir {
namespace {

// When to come back after the system rule refused.  Chosen: its window.
constexpr Duration kSystemRetry = std::chrono::seconds(1);

// How often an idle worker steps the law.  Chosen: as often as it is told the
// readings.
constexpr Duration kIdleStep = std::chrono::milliseconds(900);

// Memory of the executor load, s.  Chosen: as long as the other arms look
// back, so that a burst passes and a full executor does not.
constexpr double kExecutorMemory = 1;
// For so long, s, more than before is taken to have run when a worker looks: it
// may have begun just now.  Chosen: so that a worker which was idle lets a
// burst pass that is ten times the threshold.
constexpr double kExecutorLook = 0.1;

}  // namespace

void Guard::ConfigureStages() {
  tier_table_ = policy_->tiers ? TierTable(*policy_->tiers) : TierTable();
  stages_of_.fill(0);
  periods_.fill(std::nullopt);
  for (size_t i = 0; i < policy_->resources.size(); ++i) {
    const Resource& resource = policy_->resources[i];
    const auto add = [&](Stage stage, bool configured) {
      if (!configured || resource.stages[Index(stage)] == StageMode::kOff) {
        return;
      }
      stages_of_[i] = static_cast<uint16_t>(stages_of_[i] | 1u << Index(stage));
    };
    add(Stage::kStale, resource.stale.has_value());
    add(Stage::kQuota,
        resource.quota.has_value() || policy_->client_quota.has_value());
    add(Stage::kTiers, policy_->tiers.has_value());
    add(Stage::kSystem, policy_->system.any());
    if (resource.quota) {
      region_.quotas[rows_[i]].window_ns.store(
          resource.quota->rule.window.count(), kRelaxed);
    }
  }
}

std::optional<Guard::Refusal> Guard::PassStages(const Request& request,
                                                Taken& taken, Instant now) {
  const uint16_t resource = request.resource;
  Refusal refusal;
  if (HasStage(resource, Stage::kStale) &&
      request.behind > *policy_->resources[resource].stale &&
      !GoesOn(request, Stage::kStale)) {
    return Refusal{Reason::kStale, Duration::zero()};
  }
  if (HasStage(resource, Stage::kQuota) &&
      !(PassQuota(request, taken, refusal, now) &&
        PassClientQuota(request, taken, refusal, now)) &&
      !GoesOn(request, Stage::kQuota)) {
    return refusal;
  }
  if (HasStage(resource, Stage::kTiers) && !PassTiers(request, refusal, now) &&
      !GoesOn(request, Stage::kTiers)) {
    return refusal;
  }
  if (HasStage(resource, Stage::kSystem) &&
      !PassSystem(request, taken, refusal, now) &&
      !GoesOn(request, Stage::kSystem)) {
    return refusal;
  }
  return std::nullopt;
}

bool Guard::PassClientQuota(const Request& request, Taken& taken,
                            Refusal& refusal, Instant now) {
  if (!policy_->client_quota || request.client == 0) return true;
  const ClientQuotas::Answer answer = region_.client_quotas.Take(
      *policy_->client_quota, region_.Keyed(request.client), now);
  if (answer.admitted) {
    taken.client = true;
    taken.client_window = answer.window;
    return true;
  }
  refusal = {Reason::kQuota, answer.retry_after};
  return false;
}

bool Guard::PassQuota(const Request& request, Taken& taken, Refusal& refusal,
                      Instant now) {
  if (!policy_->resources[request.resource].quota) return true;
  const Quota::Config& rule = policy_->resources[request.resource].quota->rule;
  Region::QuotaCell& cell = region_.quotas[rows_[request.resource]];
  Quota::Answer answer;
  if (rule.kind == Quota::Kind::kCalendar) {
    if (!periods_[request.resource]) return true;
    answer = cell.quota.Take(rule, PeriodAt(request.resource, now));
  } else {
    Quota::Config shared = rule;
    shared.window = Duration(cell.window_ns.load(kRelaxed));
    answer = cell.quota.Take(shared, now);
  }
  if (answer.admitted) {
    taken.quota = true;
    taken.quota_window = answer.window;
    return true;
  }
  refusal = {Reason::kQuota, answer.retry_after};
  return false;
}

bool Guard::PassTiers(const Request& request, Refusal& refusal, Instant now) {
  const uint64_t offered =
      shard_
          .by_class[static_cast<size_t>(ClassCounter::offered_total)]
                   [Index(request.criticality)]
          .load(kRelaxed);
  // The count of a shard as bits that look random: no generator is needed.
  const uint64_t random = Mix64(
      kGoldenGamma + (offered << 8 ^ static_cast<uint64_t>(shard_index_) << 2 ^
                      Index(request.criticality)));
  const Tiers::Answer answer =
      region_.rates.tiers.Offer(tier_table_, now, random);
  if (!answer.admitted) refusal = {Reason::kTiers, answer.retry_after};
  return answer.admitted;
}

bool Guard::PassSystem(const Request&, Taken& taken, Refusal& refusal,
                       Instant now) {
  // It counts itself first: of two that race for the last place inside, the
  // later one sees both.
  const int64_t others =
      region_.in_system.Add(static_cast<size_t>(shard_index_), 1)
          .value_or(Ledger::kMost);
  SystemRule::Signals signals = SignalsAt(now);
  if (policy_->system.executor_load < SystemRule::Config::kOff) {
    signals.executor_load = ExecutorLoad(others, now);
  }
  const SystemRule::Answer answer = region_.rates.system.Admit(
      policy_->system, signals, others, system_, now);
  if (answer.admitted()) {
    taken.system = true;
    taken.system_window = answer.window;
    return true;
  }
  LeaveSystem();
  refusal = {Reason::kSystem, kSystemRetry};
  return false;
}

// Those that wait here have no thread yet.  Each worker smooths for itself what
// all of them run, and looks when it is asked.
double Guard::ExecutorLoad(int64_t inside, Instant now) {
  const auto running =
      static_cast<double>(std::max<int64_t>(inside - SumShards().queued, 0));
  double passed = ToSeconds(now - executor_at_);
  if (running > executor_load_) passed = std::min(passed, kExecutorLook);
  executor_at_ = now;
  executor_load_ +=
      (running - executor_load_) * passed / (passed + kExecutorMemory);
  return executor_load_;
}

void Guard::GiveBack(const Request& request, const Taken& taken) {
  if (taken.quota) {
    const auto& quota = policy_->resources[request.resource].quota;
    if (quota) {
      region_.quotas[rows_[request.resource]].quota.GiveBack(
          quota->rule, taken.quota_window);
    }
  }
  if (taken.client) {
    region_.client_quotas.GiveBack(region_.Keyed(request.client),
                                   taken.client_window);
  }
  if (taken.system) {
    region_.rates.system.GiveBack(taken.system_window);
    LeaveSystem();
  }
}

void Guard::EndInSystem(const Permit::Data& permit, Outcome outcome,
                        Instant now) {
  LeaveSystem();
  region_.rates.system.Complete(
      policy_->system,
      policy_->system.robust ? SignalsAt(now) : SystemRule::Signals{},
      now - permit.admitted_at, outcome < Outcome::kCancelled, system_, now);
  End(permit, outcome, now);
}

// Who sees it late refuses one more at worst.
void Guard::LeaveSystem() {
  region_.in_system.Add(static_cast<size_t>(shard_index_), -1);
}

Quota::Period Guard::PeriodAt(uint16_t resource, Instant now) const {
  CalendarPeriod period = *periods_[resource];
  if (now >= period.end) {
    const int64_t over = 1 + (now - period.end) / period.length;
    period.number += static_cast<uint32_t>(over);
    period.end += over * period.length;
  }
  return {period.number, period.end - now};
}

void Guard::SetPeriod(uint16_t resource, const CalendarPeriod& period) {
  periods_[resource] = period;
}

void Guard::Watch(const HostReadings& readings, Instant now) {
  now = Advance(now);
  Region::Rates& rates = region_.rates;
  rates.load.store(readings.load, kRelaxed);
  rates.recent_load.store(
      readings.load < 0 ? -1 : recent_load_.Add(readings.load, now), kRelaxed);
  rates.cpu_ratio.store(readings.cpu_ratio, kRelaxed);
  rates.signals_ns.store(now.time_since_epoch().count(), kRelaxed);
  if (left_) return;
  // Without requests nothing else steps the law, and what it says of them would
  // stay: demand, an overload, the level at which it shed.
  if (now - last_step_ >= kIdleStep) StepLaw(now);
  if (!IsOverloaded() && region_.flags.level.load(kRelaxed) != 0) {
    region_.flags.level.store(0, kRelaxed);
  }
  if (inflight_ == 0) ReturnFree();
}

SystemRule::Signals Guard::SignalsAt(Instant now) const {
  const Region::Rates& rates = region_.rates;
  const Instant at{Duration(rates.signals_ns.load(kRelaxed))};
  if (at == Instant{} || now - at > kSignalsAge) return {};
  return {rates.load.load(kRelaxed), rates.recent_load.load(kRelaxed),
          rates.cpu_ratio.load(kRelaxed)};
}

}  // namespace weir
