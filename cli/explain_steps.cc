#include "explain_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "weir/capacity_look.h"
#include "weir/config/units.h"
#include "weir/host/calendar.h"
#include "weir/queue/waiting_queue.h"
#include "weir/snapshot.h"

namespace weir::cli {
namespace {

using config::FormatNumber;

constexpr auto kRelaxed = std::memory_order_relaxed;

// To three digits: "1.23 s", "250 ms".
std::string About(Duration d) {
  const double s = ToSeconds(d);
  if (s >= 1) return fmt::format("{:.3g} s", s);
  if (s >= 1e-3) return fmt::format("{:.3g} ms", s * 1e3);
  return fmt::format("{:.3g} us", s * 1e6);
}

std::string Rounded(double value) { return fmt::format("{:.4g}", value); }

// What a stage says of itself, before its mode counts.
struct Finding {
  Effect effect = Effect::kPasses;
  std::string why;
  Duration retry_after{};
};

// Reads the policy and, if there is one, the region.
class Walk {
 public:
  Walk(const Policy& policy, const Request& request, const Region* region,
       Instant now, std::chrono::system_clock::time_point wall)
      : policy_(policy),
        resource_(policy.resources[request.resource]),
        request_(request),
        region_(region),
        now_(now),
        wall_(wall) {
    if (region == nullptr) return;
    snapshot_ = Read(*region);
    for (size_t row = 0; row < snapshot_->resources.size(); ++row) {
      if (snapshot_->resources[row].name == resource_.name) row_ = row;
    }
  }

  Finding Look(Stage stage) const {
    switch (stage) {
      case Stage::kExempt:
        return resource_.exempt
                   ? Finding{Effect::kAdmits, "the resource is exempt", {}}
                   : Finding{Effect::kPasses, "the resource is not exempt", {}};
      case Stage::kSwitch:
        return LookAtSwitch();
      case Stage::kDeadline:
        return LookAtDeadline();
      case Stage::kStale:
        return LookAtLink();
      case Stage::kQuota:
        return LookAtQuota();
      case Stage::kTiers:
        return LookAtTiers();
      case Stage::kSystem:
        return LookAtSystem();
      case Stage::kLevel:
        return LookAtLevel();
      default:
        return LookAtLimit();
    }
  }

  // As Guard decides it, drills aside.
  uint8_t Degrade() const {
    if (!row_ || resource_.degrade.empty() ||
        resource_.stages[Index(Stage::kSwitch)] != StageMode::kEnforce) {
      return 0;
    }
    const auto& row = snapshot_->resources[*row_];
    const bool by_hand = row.by_hand.action == Switch::Action::kDegrade &&
                         row.by_hand.ActiveAt(now_);
    return std::min(by_hand ? row.by_hand.level : row.level,
                    static_cast<uint8_t>(resource_.degrade.size()));
  }

 private:
  Finding LookAtSwitch() const {
    if (row_ ? snapshot_->resources[*row_].paused : resource_.paused) {
      return {Effect::kRefuses, "the policy pauses the resource",
              std::chrono::seconds(30)};
    }
    if (row_ && snapshot_->resources[*row_].by_hand.ActiveAt(now_)) {
      return LookAtHand(snapshot_->resources[*row_].by_hand);
    }
    if (Degrade() > 0) {
      return {Effect::kPasses,
              fmt::format("not paused; the overload set degrade level {}",
                          Degrade()),
              {}};
    }
    return {Effect::kPasses, "the resource is not paused", {}};
  }

  Finding LookAtHand(const Switch& by_hand) const {
    const std::string span = by_hand.until == kNever
                                 ? ", for good"
                                 : ", for " + About(by_hand.until - now_);
    if (by_hand.action == Switch::Action::kPause) {
      return {Effect::kRefuses, "an operator paused the resource" + span,
              by_hand.until == kNever ? std::chrono::seconds(30)
                                      : by_hand.until - now_};
    }
    return {
        Effect::kPasses,
        fmt::format("an operator set degrade level {}{}", by_hand.level, span),
        {}};
  }

  Finding LookAtDeadline() const {
    if (request_.deadline == kNever) {
      return {Effect::kPasses, "its caller waits for ever", {}};
    }
    const Duration left = request_.deadline - now_;
    if (left <= Duration::zero()) {
      return {Effect::kRefuses, "its time budget is spent", {}};
    }
    std::string why = About(left) + " left";
    if (!region_) return {Effect::kPasses, why, {}};
    const Duration base =
        FromSeconds(region_->published.base_latency.load(kRelaxed));
    why += ", an answer takes " + About(base) + " when nothing queues";
    return {Effect::kPasses,
            base > left ? why + ": if it has to wait it is refused" : why,
            {}};
  }

  Finding LookAtLink() const {
    if (!resource_.stale) return {Effect::kAbsent, "no `stale` is set", {}};
    const std::string why =
        "its link is " + About(request_.behind) + " behind, " +
        config::FormatDuration(*resource_.stale) + " are allowed";
    return {
        request_.behind > *resource_.stale ? Effect::kRefuses : Effect::kPasses,
        why,
        {}};
  }

  Finding LookAtQuota() const {
    const Finding of_resource = LookAtQuotaOfResource();
    if (!policy_.client_quota || of_resource.effect == Effect::kRefuses) {
      return of_resource;
    }
    Finding of_client = LookAtQuotaOfClient(*policy_.client_quota);
    if (of_client.effect != Effect::kRefuses &&
        of_resource.effect != Effect::kAbsent) {
      of_client.why = of_resource.why + "; " + of_client.why;
    }
    return of_client;
  }

  Finding LookAtQuotaOfClient(const ClientQuotas::Config& rule) const {
    if (request_.client == 0) {
      return {Effect::kPasses, "who is not known has no quota", {}};
    }
    const int64_t counted =
        region_ ? region_->client_quotas.Counted(
                      rule, region_->Keyed(request_.client), now_)
                : 0;
    const std::string why = fmt::format(
        "{} of {} requests of this client have started in this window of {}",
        counted, rule.calls, config::FormatDuration(rule.window));
    if (counted < rule.calls) return {Effect::kPasses, why, {}};
    const Duration left = WindowLeft(now_, rule.window);
    return {Effect::kRefuses, why + ", the next may in " + About(left), left};
  }

  Finding LookAtQuotaOfResource() const {
    if (!resource_.quota) return {Effect::kAbsent, "no quota is set", {}};
    const Quota::Config& rule = resource_.quota->rule;
    static const Quota kFresh;
    const Quota& quota = row_ ? region_->quotas[*row_].quota : kFresh;
    Quota::Answer answer;
    std::string window = config::FormatDuration(rule.window);
    if (rule.kind == Quota::Kind::kCalendar) {
      const auto zone = host::TimeZone::Load(resource_.quota->zone);
      if (!zone) return {Effect::kPasses, zone.error().message, {}};
      const auto period = host::PeriodAt(*zone, rule.unit, wall_, now_);
      answer =
          quota.Peek(rule, Quota::Period{period.number, period.end - now_});
      constexpr std::array<const char*, 4> kNames = {"hour", "day", "week",
                                                     "month"};
      window = std::string(kNames[static_cast<size_t>(rule.unit)]) + " in " +
               resource_.quota->zone;
    } else {
      answer = quota.Peek(rule, now_);
    }
    std::string why = fmt::format(
        "{} of {} requests of this {} have started", answer.counted, rule.calls,
        rule.kind == Quota::Kind::kCalendar ? window : "window of " + window);
    if (answer.admitted) return {Effect::kPasses, why, {}};
    if (answer.retry_after != Quota::kForEver) {
      why += ", the next may in " + About(answer.retry_after);
    }
    return {Effect::kRefuses, why, answer.retry_after};
  }

  Finding LookAtTiers() const {
    if (!policy_.tiers) return {Effect::kAbsent, "no tiers are set", {}};
    static const Tiers kFresh;
    const TierTable table(*policy_.tiers);
    const Tiers& tiers = region_ ? region_->rates.tiers : kFresh;
    const Tiers::Answer answer = tiers.Peek(table, now_);
    const std::string why = fmt::format(
        "{} {} of max {}: {:.3g} % are dropped here",
        table.smooth() ? "requests of the last window" : "request number",
        answer.number, policy_.tiers->max, 100 * answer.drop_ratio);
    if (!answer.admitted) return {Effect::kRefuses, why, answer.retry_after};
    return {
        answer.drop_ratio > 0 ? Effect::kUnknown : Effect::kPasses, why, {}};
  }

  Finding LookAtSystem() const {
    const SystemRule::Config& rule = policy_.system;
    if (!rule.any()) return {Effect::kAbsent, "no system rule is set", {}};
    static const SystemRule kFresh;
    const SystemRule& system = region_ ? region_->rates.system : kFresh;
    SystemRule::Signals signals = SignalsNow();
    const int64_t inflight = InSystem();
    // As it is now: each worker smooths it for itself.
    const int64_t running =
        region_ ? std::max<int64_t>(inflight - Queued(), 0) : 0;
    signals.executor_load = static_cast<double>(running);
    const auto cause = system.Peek(rule, signals, inflight, now_);
    const auto figures = system.Read(rule.robust, now_);
    const auto known = [](double value) {
      return value < 0 ? std::string("unknown") : Rounded(value);
    };
    std::string why;
    const auto add = [&](const char* key, double limit,
                         const std::string& value) {
      if (limit == SystemRule::Config::kOff) return;
      if (!why.empty()) why += ", ";
      why += fmt::format("{} {} of {}", key, value, Rounded(limit));
    };
    add("qps", rule.qps, Rounded(figures.passed_per_s));
    add("threads", rule.threads, std::to_string(inflight));
    add("executor load", rule.executor_load, std::to_string(running));
    add("latency ms", rule.latency_ms, Rounded(figures.mean_latency_ms));
    add("load", rule.load,
        known(rule.robust ? signals.recent_load : signals.load));
    add("cpu", rule.cpu_ratio, known(signals.cpu_ratio));
    why += fmt::format("; {} inflight, room for {} by the capacity check",
                       inflight, Rounded(figures.capacity()));
    if (cause == SystemRule::Cause::kNone) return {Effect::kPasses, why, {}};
    return {Effect::kRefuses, "by " + std::string(Name(cause)) + ": " + why,
            std::chrono::seconds(1)};
  }

  SystemRule::Signals SignalsNow() const {
    if (!region_) return {};
    const Region::Rates& rates = region_->rates;
    const Instant at{Duration(rates.signals_ns.load(kRelaxed))};
    if (at == Instant{} || now_ - at > Guard::kSignalsAge) return {};
    return {rates.load.load(kRelaxed), rates.recent_load.load(kRelaxed),
            rates.cpu_ratio.load(kRelaxed)};
  }

  int64_t InSystem() const { return region_ ? region_->in_system.sum() : 0; }

  int64_t Queued() const {
    int64_t queued = 0;
    for (const int64_t waiting : snapshot_->waiting) queued += waiting;
    return queued;
  }
  bool IsOverloaded() const {
    return region_->flags.overloaded.load(kRelaxed) != 0;
  }
  bool HasRoom() const {
    return Queued() == 0 &&
           snapshot_->inflight < region_->published.slots.load(kRelaxed);
  }

  // Whether as many wait as may, and nobody would leave for this one.
  bool IsTurnedAway() const {
    const bool overloaded = IsOverloaded();
    const auto& bound = region_->published.waiting_bound;
    std::array<int64_t, kCriticalities> waiting = snapshot_->waiting;
    int64_t queued = Queued();
    const uint8_t rank =
        Rank(region_->usage.Level(region_->Keyed(request_.client), now_),
             request_.attempt > 0);
    for (; queued + 1 > bound.load(kRelaxed) && queued > 0; --queued) {
      size_t least = kCriticalities - 1;
      while (waiting[least] <= 0) --least;
      if (IsLeastWanted(Index(request_.criticality), rank, least,
                        WorstRank(least), overloaded)) {
        return true;
      }
      --waiting[least];
    }
    return false;
  }

  // Of those that wait in that class, in any worker.
  uint8_t WorstRank(size_t criticality) const {
    uint8_t worst = 0;
    for (const Region::Shard& shard : region_->shards) {
      if (shard.waiting[criticality].load(kRelaxed) > 0) {
        worst = std::max(worst, shard.worst_rank.load(kRelaxed));
      }
    }
    return worst;
  }

  Duration RetryAfter() const {
    return RetryAfterFor(Queued(), region_->published.capacity.load(kRelaxed),
                         region_->published.demand.load(kRelaxed));
  }

  Finding LookAtLevel() const {
    if (!region_) {
      return {Effect::kUnknown,
              "refuses the least critical when demand exceeds capacity",
              {}};
    }
    const double demand = region_->published.demand.load(kRelaxed);
    const double capacity = region_->published.capacity.load(kRelaxed);
    std::string why = fmt::format("demand {}/s, capacity {}/s", Rounded(demand),
                                  Rounded(capacity));
    if (HasRoom() || !IsOverloaded()) return {Effect::kPasses, why, {}};
    const Level level(
        request_.criticality,
        region_->usage.Level(region_->Keyed(request_.client), now_));
    why += fmt::format("; its level is {}, the last one shed had {}",
                       level.value(), region_->flags.level.load(kRelaxed));
    if (!IsTurnedAway()) {
      return {Effect::kPasses, why + "; there is room to wait", {}};
    }
    return {Effect::kRefuses, why, RetryAfter()};
  }

  Finding LookAtLimit() const {
    if (!region_) {
      return {Effect::kPasses, "a service that has just started has room", {}};
    }
    const int64_t slots = region_->published.slots.load(kRelaxed);
    std::string why = fmt::format("{} of {} run, {} wait", snapshot_->inflight,
                                  slots, Queued());
    if (HasRoom()) return {Effect::kPasses, why, {}};
    if (IsOverloaded() || !IsTurnedAway()) return {Effect::kWaits, why, {}};
    return {Effect::kRefuses, why + ", no more may wait", RetryAfter()};
  }

  const Policy& policy_;
  const Resource& resource_;
  const Request& request_;
  const Region* region_;
  Instant now_;
  std::chrono::system_clock::time_point wall_;
  std::optional<Snapshot> snapshot_;
  std::optional<size_t> row_;
};

constexpr std::array<std::string_view, 7> kEffectNames = {
    "passes", "admits", "waits", "REFUSES", "would refuse", "-", "depends"};

std::string Answer(const Policy& policy, const Explanation& e) {
  const std::string cheaper =
      e.degrade > 0
          ? fmt::format(", answered at degrade level {} of {}", e.degrade,
                        policy.resources[e.request.resource].degrade.size())
          : "";
  if (e.verdict == Verdict::kQueue) return "it waits for its turn" + cheaper;
  if (e.verdict == Verdict::kAdmit) return "it runs" + cheaper;
  const Stage stage = *e.decided_by;
  const bool expired = stage == Stage::kDeadline;
  const int status = expired                   ? 504
                     : stage == Stage::kQuota  ? 429
                     : stage == Stage::kSwitch ? 503
                                               : policy.shed_status;
  std::string text = fmt::format("refused by {}, HTTP {}", Name(stage), status);
  if (e.retry_after > Duration::zero() && e.retry_after != Quota::kForEver) {
    text += ", to come back after " + About(e.retry_after);
  }
  return text;
}

}  // namespace

std::string_view Name(Effect effect) {
  return kEffectNames[static_cast<size_t>(effect)];
}

Explanation Explain(const Policy& policy, const Request& request,
                    const Region* region, Instant now,
                    std::chrono::system_clock::time_point wall) {
  Explanation out;
  out.request = request;
  const Walk walk(policy, request, region, now, wall);
  out.degrade = walk.Degrade();
  const StageModes& modes = policy.resources[request.resource].stages;
  for (size_t i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    Finding finding = walk.Look(stage);
    if (modes[i] == StageMode::kOff) {
      finding = {Effect::kAbsent, "the stage is off", {}};
    } else if (modes[i] == StageMode::kShadow) {
      if (finding.effect == Effect::kRefuses) {
        finding.effect = Effect::kWouldRefuse;
      } else if (finding.effect != Effect::kAbsent) {
        finding.effect = Effect::kPasses;
      }
    }
    const bool decides = finding.effect == Effect::kAdmits ||
                         finding.effect == Effect::kWaits ||
                         finding.effect == Effect::kRefuses;
    if (decides && !out.decided_by) {
      out.decided_by = stage;
      out.retry_after = finding.retry_after;
      out.verdict = finding.effect == Effect::kRefuses ? Verdict::kShed
                    : finding.effect == Effect::kWaits ? Verdict::kQueue
                                                       : Verdict::kAdmit;
    }
    out.steps.push_back(
        {stage, modes[i], finding.effect, std::move(finding.why)});
  }
  if (out.verdict == Verdict::kShed || out.decided_by == Stage::kExempt) {
    out.degrade = 0;
  }
  return out;
}

std::string RenderText(const Policy& policy, const Explanation& e) {
  const Request& request = e.request;
  std::string text =
      fmt::format("{} of {}, {}\n", policy.resources[request.resource].name,
                  policy.service, Name(request.criticality));
  for (const Step& step : e.steps) {
    const bool later = e.decided_by && step.stage > *e.decided_by;
    text += fmt::format("  {:<9} {:<13} {}{}\n", Name(step.stage),
                        later ? "(not asked)" : Name(step.effect), step.why,
                        step.mode == StageMode::kShadow ? "; in shadow" : "");
  }
  return text + "answer: " + Answer(policy, e) + '\n';
}

std::string RenderJson(const Policy& policy, const Explanation& e) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (const Step& step : e.steps) {
    constexpr std::array<std::string_view, 7> kWords = {
        "passes",       "admits", "waits",  "refuses",
        "would_refuse", "absent", "depends"};
    stages.push_back({{"stage", Name(step.stage)},
                      {"mode", Name(step.mode)},
                      {"effect", kWords[static_cast<size_t>(step.effect)]},
                      {"asked", !e.decided_by || step.stage <= *e.decided_by},
                      {"why", step.why}});
  }
  nlohmann::ordered_json out = {
      {"service", policy.service},
      {"resource", policy.resources[e.request.resource].name},
      {"criticality", Name(e.request.criticality)},
      {"verdict", Name(e.verdict)},
      {"decided_by", nullptr},
      {"retry_after_s", nullptr},
      {"degrade", e.degrade},
      {"stages", std::move(stages)}};
  if (e.decided_by) out["decided_by"] = Name(*e.decided_by);
  if (e.retry_after > Duration::zero() && e.retry_after != Quota::kForEver) {
    out["retry_after_s"] = ToSeconds(e.retry_after);
  }
  return out.dump() + '\n';
}

}  // namespace weir::cli
