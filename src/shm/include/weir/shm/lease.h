// Which process owns which shard, and what becomes of the dead one's.
//
//   auto lease = ShardLease::Claim(*region);     // In the worker, after fork.
//   auto guard = Guard::Make(policy, *region, lease->shard(), now);
//   Reclaimer reclaimer(*region);
//   ...
//   reclaimer.Run(now);                          // From any worker's timer.
//
// Each worker may and should run a reclaimer: the last one alive does the
// work, and no master process is needed.

#ifndef WEIR_SHM_LEASE_H_
#define WEIR_SHM_LEASE_H_

#include <cstdint>

#include "weir/region.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir::shm {

// The calling process: its pid, and when it started in clock ticks since boot.
// pid 0 when /proc cannot be read.
ProcessId Self();

// False only when that process is certain to be gone: there is no such pid, or
// it is a zombie, or it started at another time (the pid was used again,
// perhaps by another user).  A process that may not be looked at (hidepid)
// counts as alive.
// Only means something in the pid namespace of the process: see SameHost().
bool IsAlive(ProcessId process);

// Whether the workers of a region share this process's pids and clock.
bool SameHost(const Region& region);

// A shard, for as long as this lives.
class ShardLease {
 public:
  // Claims a free shard for the calling process, after taking back those of
  // what it was before it replaced itself (exec), and those of dead processes
  // if there is none.  Several for one process (its threads) are fine.  A lease
  // does not pass to a forked child: claim in the worker.  When there is no
  // room, a worker may try again later: it costs some microseconds for each
  // owned shard.
  static Result<ShardLease> Claim(Region& region);

  // Gives the shard back, unless this is a forked copy of the lease.  The
  // guard that works on it must be gone.
  ~ShardLease();
  ShardLease(ShardLease&& other) noexcept;
  ShardLease& operator=(ShardLease&& other) noexcept;

  int shard() const { return shard_; }

 private:
  ShardLease(Region* region, int shard, int32_t pid)
      : region_(region), shard_(shard), pid_(pid) {}

  Region* region_;
  int shard_;
  int32_t pid_;
};

// Takes back what dead workers held.
class Reclaimer {
 public:
  // How often the owners are looked at.
  // Chosen: a quarter of the second within which inflight must be back, so
  // that a late timer does no harm.
  static constexpr Duration kInterval = std::chrono::milliseconds(250);

  explicit Reclaimer(Region& region) : region_(region) {}

  // Looks at the owners of all shards, if that is due, and reclaims the shards
  // of those that are gone.  Returns the inflight taken back.  Costs some
  // microseconds for each owned shard, and nothing when it is not due.
  int64_t Run(Instant now);

  // When Run() is due next.
  Instant next() const { return next_; }

 private:
  Region& region_;
  ProcessId self_;
  Instant next_ = Instant::min();
};

}  // namespace weir::shm

#endif  // WEIR_SHM_LEASE_H_
