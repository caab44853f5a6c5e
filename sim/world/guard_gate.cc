// The guard of production behind the gate of a simulated replica: one, or some
// that share a region as the workers of nginx do.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/guard.h"
#include "weir/region.h"
#include "weir/sim/algorithms.h"
#include "weir/sim/gate.h"
#include "weir/splitmix64.h"
#include "weir/waiter.h"

namespace weir::sim {

namespace {

class GuardGate final : public Gate {
 public:
  GuardGate(const std::shared_ptr<const Policy>& policy, int workers,
            const GateContext& context)
      : events_(context.events),
        host_(context.host),
        seed_(context.seed),
        region_(*policy, context.events.now()) {
    for (const scenario::Route& route : context.scenario.routes) {
      resources_.push_back(policy->FindResource(route.name).value_or(0));
    }
    for (int i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<Worker>(*this, policy, i));
    }
  }

  ~GuardGate() override {
    slots_.clear();  // Permits and waiters go before their guard.
  }

  Decision Offer(Visit& visit, Instant now) override {
    Slot& slot = TakeSlot(visit);
    Request request = visit.request;
    request.resource = resources_[request.resource];
    slot.worker = WorkerOf(visit);
    Admission admission = slot.worker->guard->Admit(request, slot, now);
    slot.permit = std::move(admission.permit);
    if (admission.decision.verdict == Verdict::kShed) ReturnSlot(visit);
    return admission.decision;
  }

  void Settle(Instant now) override {
    for (const auto& worker : workers_) worker->Settle(now);
  }

  void Finish(Visit& visit, Outcome outcome, Instant now) override {
    Slot& slot = slots_[visit.slot];
    Worker& worker = *slot.worker;
    worker.guard->Finish(std::move(slot.permit), outcome, now);
    ReturnSlot(visit);
    worker.Settle(now);
  }

  void Cancel(Visit& visit, Instant now) override {
    Slot& slot = slots_[visit.slot];
    Worker& worker = *slot.worker;
    worker.guard->Cancel(slot, now);
    ReturnSlot(visit);
    worker.Settle(now);
  }

  bool Turn(Visit&, Duration, Instant) override { return true; }
  double limit() const override {
    return static_cast<double>(workers_[0]->guard->limit());
  }
  int64_t waiting() const override {
    int64_t sum = 0;
    for (const auto& worker : workers_) sum += worker->guard->waiting();
    return sum;
  }

 private:
  struct Worker final : Handler {
    Worker(GuardGate& owner, const std::shared_ptr<const Policy>& policy,
           int number)
        : gate(owner) {
      // A region of its own cannot be full, and the policy was checked.
      const int shard =
          gate.region_->ClaimShard({.pid = number + 1}).value_or(0);
      guard = std::move(
                  Guard::Make(policy, *gate.region_, shard, gate.events_.now()))
                  .value();
    }
    ~Worker() { gate.events_.Cancel(timer); }

    void Settle(Instant now) {
      while (Waiter* waiter = guard->NextDecided()) {
        auto& slot = static_cast<Slot&>(*waiter);
        Visit& visit = *slot.visit;
        if (slot.decision().verdict == Verdict::kAdmit) {
          slot.permit = slot.TakePermit();
          gate.host_.RunWaiting(visit);
        } else {
          const Decision decision = slot.decision();
          gate.ReturnSlot(visit);
          gate.host_.RefuseWaiting(visit, decision);
        }
      }
      const Instant wake = guard->NextWake();
      if (wake == kNever) return;
      // An earlier timer is left alone: it looks again when it fires.
      if (gate.events_.Pending(timer) && timer_at <= wake) return;
      gate.events_.Cancel(timer);
      timer_at = std::max(wake, now);
      timer = gate.events_.At(timer_at, *this);
    }

    void OnEvent(Instant now, uint64_t) override {
      guard->Tick(now);
      Settle(now);
    }

    GuardGate& gate;
    std::unique_ptr<Guard> guard;
    Timer timer;
    Instant timer_at{};
  };

  struct Slot : Waiter {
    Visit* visit = nullptr;
    Worker* worker = nullptr;
    Permit permit;
  };

  // Which connection it came over, and so to which worker, is chance.
  Worker* WorkerOf(const Visit& visit) const {
    const size_t n = workers_.size();
    return workers_[n == 1 ? 0 : Mix64(seed_ ^ visit.number) % n].get();
  }

  // As many as are here at once, and not as there are in the world: a fleet has
  // a thousand gates.
  Slot& TakeSlot(Visit& visit) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    visit.slot = free_.back();
    free_.pop_back();
    Slot& slot = slots_[visit.slot];
    slot.visit = &visit;
    return slot;
  }
  void ReturnSlot(Visit& visit) {
    free_.push_back(std::exchange(visit.slot, kNone));
  }

  EventQueue& events_;
  GateHost& host_;
  const uint64_t seed_;
  HeapRegion region_;
  std::vector<uint16_t> resources_;  // Of each route.
  std::vector<std::unique_ptr<Worker>> workers_;
  std::deque<Slot> slots_;      // Where they are, they stay.
  std::vector<uint32_t> free_;  // Of them.
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
               bool known_workers, int guard_workers) {
  Algorithm algorithm;
  algorithm.name = std::move(name);
  algorithm.make = [policy, known_workers,
                    guard_workers](const GateContext& context) {
    Policy own = policy ? *policy : DefaultPolicy(context.scenario);
    if (known_workers) {
      own.workers = context.scenario.tiers[context.tier].workers;
    }
    return std::make_unique<GuardGate>(
        std::make_shared<const Policy>(std::move(own)), guard_workers, context);
  };
  algorithm.callers.kind = CallerSide::Kind::kGuard;
  algorithm.tells_level = true;
  return algorithm;
}

}  // namespace weir::sim
