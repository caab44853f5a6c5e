#include "weir/grpc/service_guard.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "method_resource.h"
#include "sleeper.h"
#include "weir/client/overload_level.h"
#include "weir/config/policy.h"
#include "weir/config/policy_file.h"
#include "weir/guard.h"
#include "weir/host/clock.h"
#include "weir/host/feed.h"
#include "weir/shm/lease.h"
#include "weir/shm/segment.h"
#include "weir/splitmix64.h"

namespace weir::grpc {
namespace {

// CPUs that share a shard, and most shards.
// Measured: a call of gRPC takes 30 us of CPU or more, a decision holds the
// mutex for 0.5 us; four CPUs so keep it busy for 7 % of the time.
constexpr int kCpusPerShard = 4;
constexpr int kMostShards = 8;

constexpr Duration kShortestInterval = std::chrono::milliseconds(20);
constexpr Duration kLongestInterval = std::chrono::hours(1);

int DefaultShards() {
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp((cpus + kCpusPerShard - 1) / kCpusPerShard, 1, kMostShards);
}

Instant Now() { return host::MonotonicClock::Now(); }

}  // namespace

class ServiceGuard::Impl {
 public:
  explicit Impl(const Options& options) : options_(options) {}

  ~Impl() {
    sleeper_.End();
    if (thread_.joinable()) thread_.join();
  }

  std::optional<Error> Open(Policy policy) {
    if (auto error = options_.Check()) return error;
    if (auto error = policy.Check()) return error;
    const Instant now = Now();
    policy_ = std::make_shared<const Policy>(std::move(policy));
    if (options_.shared) {
      auto shared = shm::SharedRegion::Open(*policy_, now);
      if (!shared) return shared.error();
      shared_region_.emplace(std::move(shared).value());
      region_ = shared_region_->get();
      reclaimer_.emplace(*region_);
    } else {
      heap_region_.emplace(*policy_, now);
      region_ = heap_region_->get();
    }
    const int count = options_.shards == 0 ? DefaultShards() : options_.shards;
    shards_ = std::vector<Shard>(static_cast<size_t>(count));
    for (Shard& shard : shards_) {
      auto lease = shm::ShardLease::Claim(*region_);
      if (!lease) return lease.error();
      shard.lease.emplace(std::move(lease).value());
      auto guard = Guard::Make(policy_, *region_, shard.lease->shard(), now);
      if (!guard) return guard.error();
      shard.guard = std::move(guard).value();
      shard.policy = policy_;
    }
    return std::nullopt;
  }

  // From now on there is a thread.
  void Start(std::optional<config::PolicyFile> file) {
    file_ = std::move(file);
    feed_.emplace([this](const std::string& line) { Log(line); });
    TellHost(Now());
    thread_ = std::thread([this] { KeepHouse(); });
  }

  Result<Method> Register(std::string_view full_name) {
    const std::lock_guard lock(policy_mutex_);
    auto index = FindResource(*policy_, full_name);
    if (!index) return index.error();
    methods_.emplace_back(full_name);
    for (Shard& shard : shards_) {
      const std::lock_guard shard_lock(shard.mutex);
      shard.indices.push_back(*index);
    }
    return static_cast<Method>(methods_.size() - 1);
  }

  Verdict Ask(Call& call, Method method, CallView& view, Instant now,
              bool may_wait) {
    const int index = PickShard();
    Shard& shard = shards_[static_cast<size_t>(index)];
    Verdict verdict;
    Call* decided = nullptr;
    {
      const std::lock_guard lock(shard.mutex);
      call.request_ = Read(shard, method, view, now);
      call.shard_ = index;
      call.stream_ = shard.policy->resources[call.request_.resource].stream;
      may_wait = may_wait && !shard.stopped;
      Admission admission = may_wait
                                ? shard.guard->Admit(call.request_, call, now)
                                : shard.guard->Admit(call.request_, now);
      verdict = admission.decision.verdict;
      // What is queued may be decided, by another thread, as soon as the
      // mutex is free; then decision_ is that thread's.
      call.decision_ = admission.decision;
      call.permit_ = std::move(admission.permit);
      if (shard.stopped && admission.decision.reason == Reason::kLimit) {
        call.decision_.reason = Reason::kShutdown;
      }
      decided = Collect(shard);
    }
    if (verdict != Verdict::kQueue) NoteLevel(call, now);
    Tell(decided);
    sleeper_.WakeFor(shard.wake.load());
    return verdict;
  }

  void Finish(Call& call, Outcome outcome, Instant now) {
    if (!call.permit_) return;
    Shard& shard = ShardOf(call);
    Call* decided = nullptr;
    {
      const std::lock_guard lock(shard.mutex);
      shard.guard->Finish(std::move(call.permit_), outcome, now);
      decided = Collect(shard);
    }
    Tell(decided);
    sleeper_.WakeFor(shard.wake.load());
  }

  bool Cancel(Call& call, Instant now) {
    Shard& shard = ShardOf(call);
    Call* decided = nullptr;
    {
      const std::lock_guard lock(shard.mutex);
      if (!static_cast<Waiter&>(call).waiting()) return false;
      shard.guard->Cancel(call, now);
      decided = Collect(shard);
    }
    Tell(decided);
    sleeper_.WakeFor(shard.wake.load());
    return true;
  }

  http::Answer AnswerTo(const Call& call, Instant now) {
    Shard& shard = ShardOf(call);
    const bool expired = now >= call.request_.deadline;
    const std::lock_guard lock(shard.mutex);
    return http::AnswerTo(call.decision_, *shard.policy, expired,
                          static_cast<uint32_t>(draws_.Next() >> 32));
  }

  std::string ResourceName(const Call& call) {
    Shard& shard = ShardOf(call);
    const std::lock_guard lock(shard.mutex);
    const auto& resources = shard.policy->resources;
    // A policy that came since then may be shorter.
    return call.request_.resource < resources.size()
               ? resources[call.request_.resource].name
               : std::string();
  }

  std::optional<OverloadLevel> Level(Instant now) {
    return level_.Read(now, draws_.Next());
  }

  void Stop() {
    for (Shard& shard : shards_) {
      Call* decided = nullptr;
      {
        const std::lock_guard lock(shard.mutex);
        shard.stopped = true;
        shard.guard->Stop(Now());
        decided = Collect(shard);
      }
      Tell(decided);
    }
  }

  const Region& region() const { return *region_; }

 private:
  struct alignas(Region::kLine) Shard {
    std::mutex mutex;
    std::shared_ptr<const Policy> policy;
    std::vector<uint16_t> indices;  // Of each method, in *policy.
    bool stopped = false;
    // In this order: the guard goes first.
    std::optional<shm::ShardLease> lease;
    std::unique_ptr<Guard> guard;
    std::atomic<Instant> wake{kNever};  // When Tick() is due.
  };

  int PickShard() const {
    if (shards_.size() == 1) return 0;
    const int cpu = sched_getcpu();
    return cpu < 0 ? 0 : cpu % static_cast<int>(shards_.size());
  }
  Shard& ShardOf(const Call& call) {
    return shards_[static_cast<size_t>(call.shard_)];
  }

  static Request Read(const Shard& shard, Method method, CallView& view,
                      Instant now) {
    const Policy& policy = *shard.policy;
    bool trusted = false;
    if (!policy.trusted.empty()) {
      const auto peer = view.Peer();
      trusted = peer && http::IsTrusted(policy.trusted, *peer);
    }
    Request request = http::ReadRequest(policy, shard.indices[method], trusted,
                                        view, now, now);
    request.deadline = std::min(request.deadline, view.Deadline());
    return request;
  }

  // Those who wait for a decision that has fallen.  With the shard's mutex
  // held, after each call of its guard.
  static Call* Collect(Shard& shard) {
    Call* first = nullptr;
    Call** last = &first;
    while (Waiter* waiter = shard.guard->NextDecided()) {
      auto* call = static_cast<Call*>(waiter);
      call->decision_ = waiter->decision();
      call->permit_ = waiter->TakePermit();
      call->next_ = nullptr;
      *last = call;
      last = &call->next_;
    }
    shard.wake.store(shard.guard->NextWake());
    return first;
  }

  void NoteLevel(const Call& call, Instant now) {
    const Criticality criticality = call.request_.criticality;
    switch (call.decision_.reason) {
      case Reason::kRoom:
      case Reason::kWaited:
        return level_.OnAdmitted(criticality, now);
      case Reason::kLevel:
      case Reason::kLimit:
        return level_.OnRefused(criticality, now);
      default:
        return;
    }
  }

  void Tell(Call* first) {
    if (first == nullptr) return;
    const Instant now = Now();
    while (first != nullptr) {
      Call* next = first->next_;
      NoteLevel(*first, now);
      first->Decided();  // It may be gone after that.
      first = next;
    }
  }

  void KeepHouse() {
    while (sleeper_.Sleep([this] { return NextDue(); })) {
      const Instant now = Now();
      TickShards(now);
      if (reclaimer_) Reclaim(now);
      if (now >= file_due_) {
        file_due_ = now + options_.file_interval;
        if (file_) FollowFile();
      }
      if (now >= host_due_) TellHost(now);
    }
  }

  Instant NextDue() const {
    Instant next = std::min(file_due_, host_due_);
    if (reclaimer_) next = std::min(next, reclaimer_->next());
    for (const Shard& shard : shards_) {
      next = std::min(next, shard.wake.load());
    }
    return next;
  }

  void TickShards(Instant now) {
    for (Shard& shard : shards_) {
      if (now < shard.wake.load()) continue;
      Call* decided = nullptr;
      {
        const std::lock_guard lock(shard.mutex);
        shard.guard->Tick(now);
        decided = Collect(shard);
      }
      Tell(decided);
    }
  }

  void Reclaim(Instant now) {
    const int64_t reclaimed = reclaimer_->Run(now);
    if (reclaimed > 0) {
      Log(std::to_string(reclaimed) + " requests of dead processes of `" +
          policy_->service + "` taken back");
    }
  }

  // Load, CPU and the calendar, if the policy has a use for them.
  void TellHost(Instant now) {
    host_due_ = host::HostFeed::Wants(*policy_)
                    ? now + host::HostFeed::kInterval
                    : kNever;
    if (host_due_ == kNever) return;
    const auto wall = std::chrono::system_clock::now();
    try {
      for (Shard& shard : shards_) {
        const std::lock_guard shard_lock(shard.mutex);
        feed_->Tell(*shard.guard, now, wall);
      }
    } catch (const std::exception& e) {
      Log(std::string("reading the host: ") + e.what());
    }
  }

  void FollowFile() {
    using Change = config::PolicyFile::Change;
    try {
      switch (file_->Poll()) {
        case Change::kNone:
          break;
        case Change::kComplaints:
          Log(file_->report());
          break;
        case Change::kPolicy:
          if (*file_->policy() == *policy_) break;
          if (const auto error = Apply(*file_->policy())) {
            Log("policy \"" + file_->path() + "\" changed and is refused: " +
                error->message + "; the running policy is unchanged");
          } else {
            Log("policy \"" + file_->path() + "\" changed and is in force");
            host_due_ = Instant::min();
          }
          break;
      }
    } catch (const std::exception& e) {
      Log("reading \"" + file_->path() + "\": " + e.what());
    }
  }

  std::optional<Error> Apply(Policy policy) {
    const std::lock_guard lock(policy_mutex_);
    std::vector<uint16_t> indices;
    for (const std::string& method : methods_) {
      auto index = FindResource(policy, method);
      if (!index) return index.error();
      indices.push_back(*index);
    }
    auto next = std::make_shared<const Policy>(std::move(policy));
    for (Shard& shard : shards_) {
      Call* decided = nullptr;
      {
        const std::lock_guard shard_lock(shard.mutex);
        // The first shard says whether the region has room for it; then the
        // others find theirs.
        if (auto error = shard.guard->Apply(next, Now())) return error;
        shard.policy = next;
        shard.indices = indices;
        decided = Collect(shard);
      }
      Tell(decided);
    }
    policy_ = std::move(next);
    return std::nullopt;
  }

  void Log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  const Options options_;
  // Who applies a policy and who registers a method take turns; the thread
  // alone changes policy_.
  std::mutex policy_mutex_;
  std::shared_ptr<const Policy> policy_;
  std::vector<std::string> methods_;

  std::optional<shm::SharedRegion> shared_region_;
  std::optional<HeapRegion> heap_region_;
  Region* region_ = nullptr;
  std::vector<Shard> shards_;
  SharedSplitMix64 draws_{
      static_cast<uint64_t>(Now().time_since_epoch().count())};
  LevelMeter level_;

  // Of the thread.
  std::optional<config::PolicyFile> file_;
  std::optional<shm::Reclaimer> reclaimer_;
  Instant file_due_ = Instant::min();
  std::optional<host::HostFeed> feed_;
  Instant host_due_ = kNever;

  Sleeper sleeper_;
  std::thread thread_;
};

std::optional<Error> ServiceGuard::Options::Check() const {
  if (shards < 0 || static_cast<size_t>(shards) > Region::kShards) {
    return Error{"`shards` is " + std::to_string(shards) +
                 ", but a region has " + std::to_string(Region::kShards) +
                 "; use one of them or more, or 0 to have them chosen"};
  }
  if (file_interval < kShortestInterval || file_interval > kLongestInterval) {
    return Error{
        "`file_interval` must lie between 20ms and 1h: shorter keeps a core "
        "busy, longer seems never to come"};
  }
  return std::nullopt;
}

ServiceGuard::ServiceGuard(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
ServiceGuard::~ServiceGuard() = default;

Result<std::shared_ptr<ServiceGuard>> ServiceGuard::Load(
    const std::string& policy_path, const Options& options) {
  config::PolicyFile file(policy_path);
  if (file.Reload() != config::PolicyFile::Change::kPolicy) {
    return Error{file.report()};
  }
  auto impl = std::make_unique<Impl>(options);
  if (auto error = impl->Open(*file.policy())) return *error;
  impl->Start(std::move(file));
  return std::shared_ptr<ServiceGuard>(new ServiceGuard(std::move(impl)));
}

Result<std::shared_ptr<ServiceGuard>> ServiceGuard::Make(
    Policy policy, const Options& options) {
  auto impl = std::make_unique<Impl>(options);
  if (auto error = impl->Open(std::move(policy))) return *error;
  impl->Start(std::nullopt);
  return std::shared_ptr<ServiceGuard>(new ServiceGuard(std::move(impl)));
}

Result<ServiceGuard::Method> ServiceGuard::Register(
    std::string_view full_name) {
  return impl_->Register(full_name);
}

Verdict ServiceGuard::Ask(Call& call, Method method, CallView& view,
                          Instant now, bool may_wait) {
  call.guard_ = this;
  return impl_->Ask(call, method, view, now, may_wait);
}

void ServiceGuard::Finish(Call& call, Outcome outcome, Instant now) {
  impl_->Finish(call, outcome, now);
}

bool ServiceGuard::Cancel(Call& call, Instant now) {
  return impl_->Cancel(call, now);
}

http::Answer ServiceGuard::AnswerTo(const Call& call, Instant now) {
  return impl_->AnswerTo(call, now);
}

std::string ServiceGuard::ResourceName(const Call& call) {
  return impl_->ResourceName(call);
}

std::optional<OverloadLevel> ServiceGuard::Level(Instant now) {
  return impl_->Level(now);
}

void ServiceGuard::Stop() { impl_->Stop(); }

const Region& ServiceGuard::region() const { return impl_->region(); }

Duration ServiceGuard::base_latency() const {
  return FromSeconds(
      region().published.base_latency.load(std::memory_order_relaxed));
}

ServiceGuard::Call::~Call() {
  if (guard_ == nullptr || !permit_) return;
  guard_->Finish(*this, Outcome::kIgnored, Now());
}

}  // namespace weir::grpc
