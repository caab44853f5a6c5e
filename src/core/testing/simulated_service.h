// A small world for the tests of the guard: Poisson arrivals at one or more
// workers, each with its guard, in front of one first-come-first-served
// service.  weir sim is the instrument for everything larger.

#ifndef WEIR_CORE_TESTING_SIMULATED_SERVICE_H_
#define WEIR_CORE_TESTING_SIMULATED_SERVICE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "weir/guard.h"
#include "weir/splitmix64.h"

namespace weir::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : draws_(seed) {}
  uint64_t Next() { return draws_.Next(); }
  // In (0, 1].
  double Uniform() { return static_cast<double>((Next() >> 11) + 1) * 0x1p-53; }
  double Exponential(double mean) { return -mean * std::log(Uniform()); }

 private:
  SplitMix64 draws_;
};

struct World {
  uint64_t seed = 1;
  int workers = 1;       // Guards.
  int known = 0;         // Policy::workers.
  int servers = 16;      // Of the service.
  double service = .01;  // Mean service time, s, exponential.
  double deadline = .5;  // s
  // Shares of vital, important, deferrable, sheddable.
  std::array<double, kCriticalities> shares = {.1, .3, .4, .2};
  // Of the only resource, and what a request then costs of a full one.
  std::vector<DegradeLevel> degrade = {};
  double degraded_cost = 1;
  // Which client asks; 0 is unknown.
  std::function<uint64_t(Random&)> client = [](Random&) { return 0; };
  // Demand over capacity at a time.
  std::function<double(double)> load = [](double) { return .8; };
  // Changes servers or service time at a time.
  std::function<void(double, World&)> change = [](double, World&) {};

  double capacity() const { return servers / service; }
};

class SimulatedService {
 public:
  explicit SimulatedService(const World& world)
      : world_(world), arrivals_(world.seed), jobs_(world.seed + 1) {
    policy_.service = "test";
    policy_.deadline = FromSeconds(world.deadline);
    policy_.workers = world.known;
    policy_.resources.push_back({.name = "api", .degrade = world.degrade});
    region_ = std::make_unique<HeapRegion>(policy_, kStart);
    for (int i = 0; i < world.workers; ++i) {
      const auto shard = (*region_)->ClaimShard({.pid = 100 + i, .start = 1});
      guards_.push_back(std::move(*Guard::Make(
          std::make_shared<Policy>(policy_), **region_, *shard, kStart)));
      wakes_.push_back(kNever);
    }
  }
  ~SimulatedService() {
    for (auto& job : inflight_) {
      job->guard->Finish(std::move(job->permit), Outcome::kIgnored, now_);
    }
  }

  struct Tally {
    int64_t offered = 0;
    int64_t good = 0;
    int64_t shed = 0;
    int64_t late = 0;
    int64_t degraded = 0;  // Of those that ended.
  };

  // Runs until `seconds` after the start.
  void RunTo(double seconds) {
    const Instant end = kStart + FromSeconds(seconds);
    if (events_.empty()) ScheduleArrival();
    while (!events_.empty() && events_.top().at <= end) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      world_.change(Seconds(), world_);
      Handle(event);
    }
    now_ = end;
  }

  // Since the last call.
  std::array<Tally, kCriticalities> TakeTallies() {
    return std::exchange(tallies_, {});
  }
  // Since the last call, s, of the admitted.
  double TakeP99() {
    std::vector<double> latencies = std::exchange(latencies_, {});
    if (latencies.empty()) return 0;
    const auto at = latencies.begin() +
                    static_cast<std::ptrdiff_t>(latencies.size() * 99 / 100);
    std::nth_element(latencies.begin(), at, latencies.end());
    return *at;
  }

  Guard& guard(int worker) { return *guards_[static_cast<size_t>(worker)]; }
  Region& region() { return **region_; }
  Instant now() const { return now_; }
  World& world() { return world_; }
  const std::vector<uint64_t>& good_clients() const { return good_clients_; }
  const std::vector<uint64_t>& shed_clients() const { return shed_clients_; }

 private:
  static constexpr Instant kStart{std::chrono::seconds(1000)};

  struct Job : Waiter {
    Request wanted;
    Permit permit;
    Guard* guard = nullptr;
    size_t worker = 0;
    bool degraded = false;
  };
  enum class Kind { kArrival, kDone, kWake };
  struct Event {
    Instant at;
    uint64_t order = 0;
    Kind kind = Kind::kArrival;
    Job* job = nullptr;
    size_t worker = 0;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  double Seconds() const { return ToSeconds(now_ - kStart); }
  void Schedule(Instant at, Kind kind, Job* job, size_t worker) {
    events_.push({at, ++order_, kind, job, worker});
  }
  void ScheduleArrival() {
    const double rate = world_.load(Seconds()) * world_.capacity();
    Schedule(now_ + FromSeconds(arrivals_.Exponential(1 / rate)),
             Kind::kArrival, nullptr, 0);
  }

  void Handle(const Event& event) {
    switch (event.kind) {
      case Kind::kArrival:
        Arrive();
        ScheduleArrival();
        break;
      case Kind::kDone:
        --busy_;
        Done(event.job);
        Serve();
        break;
      case Kind::kWake:
        if (wakes_[event.worker] != event.at) return;
        wakes_[event.worker] = kNever;
        guards_[event.worker]->Tick(now_);
        Settle(event.worker);
        break;
    }
  }

  void Arrive() {
    auto owned = std::make_unique<Job>();
    Job* const job = owned.get();
    const size_t worker = arrivals_.Next() % guards_.size();
    job->worker = worker;
    job->guard = guards_[job->worker].get();
    double share = arrivals_.Uniform();
    size_t c = 0;
    while (c + 1 < kCriticalities && share > world_.shares[c]) {
      share -= world_.shares[c++];
    }
    job->wanted = {.criticality = static_cast<Criticality>(c),
                   .client = world_.client(arrivals_),
                   .arrived = now_,
                   .deadline = now_ + FromSeconds(world_.deadline)};
    ++tallies_[c].offered;
    inflight_.push_back(std::move(owned));
    Admission admission = job->guard->Admit(job->wanted, *job, now_);
    if (admission.decision.verdict == Verdict::kAdmit) {
      job->permit = std::move(admission.permit);
      job->degraded = admission.decision.degrade > 0;
      accepted_.push_back(job);
      Serve();
    } else if (admission.decision.verdict == Verdict::kShed) {
      Forget(job, /*shed=*/true);
    }
    Settle(worker);
  }

  // Takes what was decided, and sets the timer.
  void Settle(size_t worker) {
    Guard& guard = *guards_[worker];
    while (Waiter* waiter = guard.NextDecided()) {
      Job* const job = static_cast<Job*>(waiter);
      if (waiter->decision().verdict == Verdict::kShed) {
        Forget(job, /*shed=*/true);
        continue;
      }
      job->permit = waiter->TakePermit();
      job->degraded = waiter->decision().degrade > 0;
      accepted_.push_back(job);
    }
    Serve();
    const Instant wake = std::max(guard.NextWake(), now_);
    if (wake != kNever && wake < wakes_[worker]) {
      wakes_[worker] = wake;
      Schedule(wake, Kind::kWake, nullptr, worker);
    }
  }

  void Serve() {
    while (busy_ < world_.servers && !accepted_.empty()) {
      Job* const job = accepted_.front();
      accepted_.pop_front();
      ++busy_;
      const double mean =
          world_.service * (job->degraded ? world_.degraded_cost : 1);
      Schedule(now_ + FromSeconds(jobs_.Exponential(mean)), Kind::kDone, job,
               0);
    }
  }

  void Done(Job* job) {
    Tally& tally = tallies_[Index(job->wanted.criticality)];
    tally.degraded += job->degraded;
    latencies_.push_back(ToSeconds(now_ - job->wanted.arrived));
    if (now_ <= job->wanted.deadline) {
      ++tally.good;
      good_clients_.push_back(job->wanted.client);
    } else {
      ++tally.late;
    }
    job->guard->Finish(std::move(job->permit), Outcome::kOk, now_);
    const size_t worker = job->worker;
    Forget(job, /*shed=*/false);
    Settle(worker);
  }

  void Forget(Job* job, bool shed) {
    if (shed) {
      ++tallies_[Index(job->wanted.criticality)].shed;
      shed_clients_.push_back(job->wanted.client);
    }
    for (auto& slot : inflight_) {
      if (slot.get() == job) {
        std::swap(slot, inflight_.back());
        inflight_.pop_back();
        return;
      }
    }
  }

  World world_;
  Policy policy_;
  Random arrivals_;
  Random jobs_;
  std::unique_ptr<HeapRegion> region_;
  std::vector<std::unique_ptr<Guard>> guards_;
  std::vector<Instant> wakes_;
  std::vector<std::unique_ptr<Job>> inflight_;
  std::priority_queue<Event> events_;
  std::deque<Job*> accepted_;
  std::array<Tally, kCriticalities> tallies_{};
  std::vector<double> latencies_;
  std::vector<uint64_t> good_clients_;
  std::vector<uint64_t> shed_clients_;
  Instant now_ = kStart;
  uint64_t order_ = 0;
  int busy_ = 0;
};

}  // namespace weir::testing

#endif  // WEIR_CORE_TESTING_SIMULATED_SERVICE_H_
