#include "weir/shm/lease.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "process.h"
#include "weir/guard.h"

namespace weir::shm {
namespace {

std::optional<ProcessStat> ReadStat(int32_t pid) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const int fd = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  // 52 numbers of at most 20 digits would fit twice.
  std::array<char, 2048> line;
  const ssize_t length = ::read(fd, line.data(), line.size());
  ::close(fd);
  if (length <= 0) return std::nullopt;
  return ParseStat({line.data(), static_cast<size_t>(length)});
}

// The shards that this process has leased since its program was started: after
// exec() it is the same process still, by pid and start time, and what its
// former program held is nobody's.
class OwnLeases {
 public:
  static OwnLeases& Get() {
    // Never destroyed: leases may live in other static objects.
    static OwnLeases& leases = *new OwnLeases;
    return leases;
  }
  std::unique_lock<std::mutex> Lock() { return std::unique_lock(mutex_); }
  // All with the lock held.
  void Add(const Region& region, int shard) {
    leases_.insert(Key(region, shard));
  }
  void Remove(const Region& region, int shard) {
    const auto found = leases_.find(Key(region, shard));
    if (found != leases_.end()) leases_.erase(found);
  }
  bool Has(const Region& region, int shard) const {
    return leases_.contains(Key(region, shard));
  }

 private:
  OwnLeases() {
    // A child has none, but copies of its parent's guards.
    ::pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); },
                     [] {
                       Get().leases_.clear();
                       Get().mutex_.unlock();
                       Guard::NoteFork();
                     });
  }
  // A region has one identity however often it is mapped.
  static std::pair<uint64_t, int> Key(const Region& region, int shard) {
    const uint64_t identity =
        region.header.identity.load(std::memory_order_relaxed);
    return {identity != 0 ? identity : reinterpret_cast<uintptr_t>(&region),
            shard};
  }

  std::mutex mutex_;
  std::multiset<std::pair<uint64_t, int>> leases_;
};

enum class Whose { kAll, kOwn };

int64_t ReclaimDead(Region& region, ProcessId self, Whose whose) {
  auto& own = OwnLeases::Get();
  const auto lock = own.Lock();
  int64_t inflight = 0;
  // All of them, not only those below shards_used: who claims a shard may die
  // before that has grown.
  for (int shard = 0; shard < static_cast<int>(Region::kShards); ++shard) {
    const ProcessId owner = region.Owner(shard);
    if (owner.pid == 0 || (whose == Whose::kOwn && owner != self)) continue;
    if (owner == self ? own.Has(region, shard) : IsAlive(owner)) continue;
    inflight += region.Reclaim(shard, owner, self);
  }
  return inflight;
}

}  // namespace

ProcessId Self() {
  const int32_t pid = ::getpid();
  const std::optional<ProcessStat> stat = ReadStat(pid);
  if (!stat) return {};
  return {.pid = pid, .start = stat->start};
}

bool IsAlive(ProcessId process) {
  // 0 and below would ask about groups of processes.
  if (process.pid <= 0) return false;
  // Another user's (EPERM) has a start time to look at all the same.
  if (::kill(process.pid, 0) != 0 && errno == ESRCH) return false;
  const std::optional<ProcessStat> stat = ReadStat(process.pid);
  if (!stat) return true;
  if (stat->start != process.start) return false;
  // A process whose first thread has ended while others run shows as a zombie,
  // but with more than one thread.
  const bool ended = stat->state == 'Z' || stat->state == 'X';
  return !ended || stat->threads > 1;
}

bool SameHost(const Region& region) {
  const uint64_t theirs =
      region.header.namespaces.load(std::memory_order_relaxed);
  return theirs == 0 || theirs == Namespaces();
}

Result<ShardLease> ShardLease::Claim(Region& region) {
  const ProcessId self = Self();
  if (self.pid == 0 || !SameHost(region)) {
    return Error{
        "error: cannot join the workers of `" + std::string(region.service()) +
        "`\n  why: /proc does not show this process as they see it (no /proc, "
        "or another pid or time namespace)\n  fix: mount /proc; fork workers "
        "within the namespaces of the process that opened the segment"};
  }
  const auto claim = [&] {
    const auto lock = OwnLeases::Get().Lock();
    const std::optional<int> shard = region.ClaimShard(self);
    if (shard) OwnLeases::Get().Add(region, *shard);
    return shard;
  };
  ReclaimDead(region, self, Whose::kOwn);
  std::optional<int> shard = claim();
  if (!shard) {
    ReclaimDead(region, self, Whose::kAll);
    shard = claim();
  }
  if (!shard) {
    return Error{"error: no room for one more worker of `" +
                 std::string(region.service()) + "`\n  why: all " +
                 std::to_string(Region::kShards) +
                 " shards belong to workers that are alive\n  fix: run fewer "
                 "workers on this machine, or split the service in two"};
  }
  return ShardLease(&region, *shard, self.pid);
}

ShardLease::~ShardLease() {
  if (region_ == nullptr || ::getpid() != pid_) return;
  const auto lock = OwnLeases::Get().Lock();
  OwnLeases::Get().Remove(*region_, shard_);
  region_->ReleaseShard(shard_);
}

ShardLease::ShardLease(ShardLease&& other) noexcept
    : region_(std::exchange(other.region_, nullptr)),
      shard_(other.shard_),
      pid_(other.pid_) {}

ShardLease& ShardLease::operator=(ShardLease&& other) noexcept {
  std::swap(region_, other.region_);
  std::swap(shard_, other.shard_);
  std::swap(pid_, other.pid_);
  return *this;
}

int64_t Reclaimer::Run(Instant now) {
  if (now < next_) return 0;
  next_ = now + kInterval;
  // A forked copy must not act under its parent's name.
  if (self_.pid != ::getpid()) self_ = Self();
  if (self_.pid == 0 || !SameHost(region_)) return 0;
  return ReclaimDead(region_, self_, Whose::kAll);
}

}  // namespace weir::shm
