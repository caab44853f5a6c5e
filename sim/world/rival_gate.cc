// Other controllers' laws behind the gate of a simulated replica.
//
// Without a queue, a rival that has a limit refuses beyond it, and one that
// sits inside the server sees the server's own queue.  With one, requests wait
// here while no more than the limit run; a rival that has none of its own is
// given the limit that an operator would have tuned by hand on the first
// phase, and sees this queue as its own.

#include "rival_gate.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bounded_queue.h"
#include "weir/scenario/capacity.h"
#include "weir/scenario/random.h"

namespace weir::sim {

namespace {

using rivals::Order;
using rivals::Rival;
using rivals::Seat;

// Linux updates the load average this often, with this time constant.
// Source: [Linux] include/linux/sched/loadavg.h.
constexpr Duration kLoadPeriod = std::chrono::seconds(5);
constexpr double kLoadMemory = 60;  // Seconds.

class RivalGate final : public Gate, private Handler {
 public:
  RivalGate(const rivals::Entry& entry, bool queued, const GateContext& context)
      : events_(context.events),
        host_(context.host),
        seat_(entry.seat),
        seed_(context.seed),
        tuned_(TunedLimit(context.scenario, context.tier)),
        rival_(entry.make(WorldOf(context, tuned_))) {
    if (queued) {
      const bool priority = rival_.limits() && !rival_.takes();
      queue_.emplace(
          priority ? BoundedQueue::Kind::kPriority : BoundedQueue::Kind::kFifo,
          context.scenario.deadline);
    }
    watched_at_ = events_.now();
    if (rival_.watches()) {
      watch_timer_ = events_.After(rival_.watch_period(), *this, kWatch);
      load_timer_ = events_.After(kLoadPeriod, *this, kLoad);
    }
  }

  ~RivalGate() override {
    events_.Cancel(timer_);
    events_.Cancel(watch_timer_);
    events_.Cancel(load_timer_);
  }

  Decision Offer(Visit& visit, Instant now) override {
    if (queue_) queue_->OnArrival(now);
    if (!rival_.Admit(ArrivalOf(visit, now))) return Refused(Reason::kLevel);
    const bool room = inflight_ < Limit(now);
    if (!queue_) {
      if (!room) return Refused(Reason::kLimit);
      Begin(visit, now);
      return {};
    }
    if (room && queue_->size() == 0 && Take(visit, Duration{}, now)) {
      Begin(visit, now);
      return {};
    }
    while (Visit* victim = queue_->Push(visit, now)) {
      if (victim == &visit) return Refused(Reason::kLimit);
      refused_.push_back(victim);
    }
    return {Verdict::kQueue, Reason::kQueued, Duration{}};
  }

  void Settle(Instant now) override {
    if (!queue_) return;
    while (!refused_.empty()) {
      Visit* const victim = refused_.back();
      refused_.pop_back();
      host_.RefuseWaiting(*victim, Refused(Reason::kLevel));
    }
    while (queue_->size() > 0 && inflight_ < Limit(now)) {
      Visit* visit = queue_->NextHopeless(now);
      const bool hopeless = visit != nullptr;
      if (!hopeless) {
        visit = queue_->Next(rival_.QueueOrder(now) == Order::kNewestFirst);
      }
      queue_->Remove(*visit);
      if (hopeless) {
        host_.RefuseWaiting(*visit, Refused(Reason::kDeadline));
      } else if (!Take(*visit, now - visit->request.arrived, now)) {
        host_.RefuseWaiting(*visit, Refused(Reason::kLevel));
      } else {
        Begin(*visit, now);
        host_.RunWaiting(*visit);
      }
    }
    const Instant deadline = queue_->NextDeadline();
    if (deadline == kNever ||
        (events_.Pending(timer_) && timer_at_ <= deadline)) {
      return;
    }
    events_.Cancel(timer_);
    timer_at_ = deadline;
    timer_ = events_.At(deadline, *this, kExpire);
  }

  void Finish(Visit& visit, Outcome outcome, Instant now) override {
    if (queue_ && rivals::Teaches(outcome)) {
      queue_->OnFinish(now - visit.started, now);
    }
    // What was refused when it would have started never ran.
    if (outcome != Outcome::kIgnored) {
      rival_.Learn({.now = now,
                    .latency = now - visit.started,
                    .queue_delay = visit.started - visit.request.arrived,
                    .inflight_at_start = visit.inflight_before + 1,
                    .inflight = static_cast<int32_t>(inflight_),
                    .outcome = outcome,
                    .kind = visit.request.resource});
    }
    --inflight_;
    Settle(now);
  }

  void Cancel(Visit& visit, Instant now) override {
    const auto refused = std::find(refused_.begin(), refused_.end(), &visit);
    if (refused != refused_.end()) {
      refused_.erase(refused);
    } else if (queue_) {
      queue_->Remove(visit);
    }
    Settle(now);
  }

  bool Turn(Visit& visit, Duration queue_delay, Instant now) override {
    return queue_ || Take(visit, queue_delay, now);
  }

  bool inside() const override { return !queue_ && seat_ == Seat::kServer; }
  double limit() const override { return shown_limit_; }
  int64_t waiting() const override { return queue_ ? queue_->size() : 0; }

 private:
  enum Event : uint64_t { kWatch, kLoad, kExpire };

  static int32_t TunedLimit(const scenario::Scenario& scenario, size_t tier) {
    const scenario::Tier& t = scenario.tiers[tier];
    double io = 0;
    for (size_t i = 0; i < t.stages.size(); ++i) {
      if (t.stages[i].kind == scenario::Stage::Kind::kIo) {
        io += scenario::MeanSeconds(scenario::SpanAt(t, i, {}));
      }
    }
    // A tenth more than the workers, and what the delays keep busy.
    return static_cast<int32_t>(
        1.1 * scenario::ReplicaAt(t, 0, {}).workers + 1 +
        1.15 * scenario::CapacityAt(scenario, {}) / t.replicas * io);
  }

  static rivals::World WorldOf(const GateContext& context, int32_t tuned) {
    const scenario::Tier& tier = context.scenario.tiers[context.tier];
    double seconds = 0;
    for (size_t i = 0; i < tier.stages.size(); ++i) {
      seconds += scenario::MeanSeconds(scenario::SpanAt(tier, i, {}));
    }
    return {.seed = context.seed,
            .workers = tier.workers,
            .service = FromSeconds(seconds),
            .deadline = context.scenario.deadline,
            .clients = context.scenario.clients.count,
            .tuned_limit = tuned};
  }

  static Decision Refused(Reason reason) {
    return {Verdict::kShed, reason, std::chrono::seconds(1)};
  }

  int64_t Limit(Instant now) {
    int32_t limit = rival_.Limit(now);
    if (queue_ && !rival_.limits()) limit = tuned_;
    shown_limit_ = limit;
    return limit;
  }

  rivals::Arrival ArrivalOf(const Visit& visit, Instant now) const {
    rivals::Arrival arrival{
        .now = now,
        .inflight = static_cast<int32_t>(inflight_),
        .criticality = visit.request.criticality,
        .kind = visit.request.resource,
        .client = visit.request.client,
        .draw = scenario::Mix(seed_ ^ scenario::Mix(visit.number))};
    if (queue_) {
      arrival.queued = static_cast<int32_t>(queue_->size());
      arrival.queue_delay = queue_->HeadDelay(now);
    } else if (seat_ == Seat::kServer) {
      arrival.queued = host_.cpu_waiting();
      arrival.queue_delay = host_.cpu_queue_delay();
    }
    return arrival;
  }

  bool Take(Visit& visit, Duration queue_delay, Instant now) {
    return rival_.Take(
        {.now = now,
         .queue_delay = queue_delay,
         .queued = queue_ ? static_cast<int32_t>(queue_->size())
                          : host_.cpu_waiting(),
         .criticality = visit.request.criticality,
         .kind = visit.request.resource,
         .patience = visit.request.deadline - visit.request.arrived});
  }

  void Begin(Visit& visit, Instant now) {
    visit.started = now;
    visit.inflight_before = static_cast<int32_t>(inflight_);
    ++inflight_;
  }

  void OnEvent(Instant now, uint64_t event) override {
    switch (static_cast<Event>(event)) {
      case kWatch: {
        const Duration busy = host_.cpu_busy();
        const double capacity =
            ToSeconds(now - watched_at_) * std::max(host_.workers(), 1);
        rival_.Watch({.now = now,
                      .cpu_ratio = ToSeconds(busy - busy_) / capacity,
                      .load1 = load_});
        busy_ = busy;
        watched_at_ = now;
        watch_timer_ = events_.After(rival_.watch_period(), *this, kWatch);
        Settle(now);
        return;
      }
      case kLoad: {
        const double share = ToSeconds(kLoadPeriod) / kLoadMemory;
        load_ += share * (host_.cpu_load() - load_);
        load_timer_ = events_.After(kLoadPeriod, *this, kLoad);
        return;
      }
      case kExpire: {
        while (Visit* visit = queue_->NextHopeless(now)) {
          queue_->Remove(*visit);
          host_.RefuseWaiting(*visit, Refused(Reason::kDeadline));
        }
        Settle(now);
        return;
      }
    }
  }

  EventQueue& events_;
  GateHost& host_;
  const Seat seat_;
  const uint64_t seed_;
  const int32_t tuned_;
  Rival rival_;
  std::optional<BoundedQueue> queue_;
  std::vector<Visit*> refused_;  // Pushed out, and not told yet.
  int64_t inflight_ = 0;
  double shown_limit_ = 0;
  Duration busy_{};
  Instant watched_at_{};
  double load_ = 0;
  Timer watch_timer_;
  Timer load_timer_;
  Timer timer_;  // For the earliest deadline.
  Instant timer_at_{};
};

}  // namespace

Algorithm RivalAlgorithm(const rivals::Entry& entry, bool queued) {
  return {std::string(entry.name) + (queued ? "+queue" : ""),
          [&entry, queued](const GateContext& context) {
            return std::make_unique<RivalGate>(entry, queued, context);
          }};
}

}  // namespace weir::sim
