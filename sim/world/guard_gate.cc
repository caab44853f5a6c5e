// The guard of production behind the gate of a simulated replica.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/guard.h"
#include "weir/region.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/gate.h"
#include "weir/waiter.h"

namespace weir::sim {

namespace {

class GuardGate final : public Gate, private Handler {
 public:
  GuardGate(std::shared_ptr<const Policy> policy, const GateContext& context)
      : events_(context.events),
        host_(context.host),
        region_(*policy, context.events.now()) {
    for (const scenario::Route& route : context.scenario.routes) {
      resources_.push_back(policy->FindResource(route.name).value_or(0));
    }
    // A region of its own cannot be full, and the policy was checked.
    const int shard = region_->ClaimShard({.pid = 1}).value_or(0);
    guard_ = std::move(
                 Guard::Make(std::move(policy), *region_, shard, events_.now()))
                 .value();
  }

  ~GuardGate() override {
    events_.Cancel(timer_);
    slots_.clear();  // Permits and waiters go before their guard.
  }

  Decision Offer(Visit& visit, Instant now) override {
    Slot& slot = SlotOf(visit);
    Request request = visit.request;
    request.resource = resources_[request.resource];
    Admission admission = guard_->Admit(request, slot, now);
    slot.permit = std::move(admission.permit);
    return admission.decision;
  }

  void Settle(Instant now) override {
    while (Waiter* waiter = guard_->NextDecided()) {
      auto& slot = static_cast<Slot&>(*waiter);
      Visit& visit = *slot.visit;
      if (slot.decision().verdict == Verdict::kAdmit) {
        slot.permit = slot.TakePermit();
        host_.RunWaiting(visit);
      } else {
        host_.RefuseWaiting(visit, slot.decision());
      }
    }
    const Instant wake = guard_->NextWake();
    if (wake == kNever) return;
    // An earlier timer is left alone: it looks again when it fires.
    if (events_.Pending(timer_) && timer_at_ <= wake) return;
    events_.Cancel(timer_);
    timer_at_ = std::max(wake, now);
    timer_ = events_.At(timer_at_, *this);
  }

  void Finish(Visit& visit, Outcome outcome, Instant now) override {
    guard_->Finish(std::move(SlotOf(visit).permit), outcome, now);
    Settle(now);
  }

  void Cancel(Visit& visit, Instant now) override {
    guard_->Cancel(SlotOf(visit), now);
    Settle(now);
  }

  bool Turn(Visit&, Duration, Instant) override { return true; }
  double limit() const override { return static_cast<double>(guard_->limit()); }
  int64_t waiting() const override { return guard_->waiting(); }

 private:
  struct Slot : Waiter {
    Visit* visit = nullptr;
    Permit permit;
  };

  void OnEvent(Instant now, uint64_t) override {
    guard_->Tick(now);
    Settle(now);
  }

  Slot& SlotOf(Visit& visit) {
    if (slots_.size() <= visit.index) slots_.resize(visit.index + 1);
    std::unique_ptr<Slot>& slot = slots_[visit.index];
    if (!slot) slot = std::make_unique<Slot>();
    slot->visit = &visit;
    return *slot;
  }

  EventQueue& events_;
  GateHost& host_;
  HeapRegion region_;
  std::vector<uint16_t> resources_;  // Of each route.
  std::unique_ptr<Guard> guard_;
  std::vector<std::unique_ptr<Slot>> slots_;  // By index of the visit.
  Timer timer_;
  Instant timer_at_{};
};

}  // namespace

Policy DefaultPolicy(const scenario::Scenario& scenario) {
  Policy policy;
  policy.service = "simulated";
  policy.deadline = scenario.deadline;
  policy.deadline_ceiling = std::max(policy.deadline_ceiling, policy.deadline);
  for (const scenario::Route& route : scenario.routes) {
    policy.resources.emplace_back().name = route.name;
  }
  return policy;
}

Algorithm Weir(std::string name, std::shared_ptr<const Policy> policy,
               bool known_workers) {
  Algorithm algorithm;
  algorithm.name = std::move(name);
  algorithm.make = [policy, known_workers](const GateContext& context) {
    Policy own = policy ? *policy : DefaultPolicy(context.scenario);
    if (known_workers) {
      own.workers = context.scenario.tiers[context.tier].workers;
    }
    return std::make_unique<GuardGate>(
        std::make_shared<const Policy>(std::move(own)), context);
  };
  algorithm.callers.kind = CallerSide::Kind::kGuard;
  algorithm.tells_level = true;
  return algorithm;
}

}  // namespace weir::sim
