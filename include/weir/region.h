// The Region: all state that workers of a service share, in one block.
//
//   header      what this is, for whom, of which layout
//   published   what the law says now: read by every decision, rarely written
//   law         the law itself, two copies, and the turn to step it
//   resources   name, switch and degrade level of each
//   quotas      calls of each resource in the window
//   client_quotas  calls of clients in the window
//   rates       what the tiers and the system rule count
//   usage       how much each client used lately
//   places, in_system, queued  ledgers: how many places are held, how many
//               requests are inside the system stage and how many wait, by
//               class, in all workers (ledger.h)
//   shards      one for each worker: requests waiting, samples of the open
//               round, counters, histograms; written by its owner only
//
// No pointers, no locks: it may lie anywhere, on the heap or in shared memory,
// at different addresses in different processes.  Nobody ever waits for
// anybody: `turn` is only tried, and a worker that loses goes on.  A worker may
// die between any two instructions; Reclaim() then takes back what it held.
// Readers need only const access and cannot slow a writer.
//
// What is counted for all workers together is a ledger, or a sum over shards:
// either way a dead worker's part is known, leaves with it, and nothing drifts.

#ifndef WEIR_REGION_H_
#define WEIR_REGION_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/decision.h"
#include "weir/degrade/drill.h"
#include "weir/degrade/ladder.h"
#include "weir/degrade/switch.h"
#include "weir/ledger.h"
#include "weir/limit/limit_law.h"
#include "weir/policy.h"
#include "weir/rate/client_quotas.h"
#include "weir/rate/quota.h"
#include "weir/rate/system_rule.h"
#include "weir/rate/tiers.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/shared.h"
#include "weir/shed/fair_usage.h"
#include "weir/signal/histogram.h"
#include "weir/signal/retry_share.h"
#include "weir/time.h"

namespace weir {

enum class ClassCounter : size_t {
#define WEIR_CLASS_COUNTER(name, unit, help) name,
#include "weir/counters.def"
  kCount,
};
enum class Counter : size_t {
#define WEIR_COUNTER(name, unit, help) name,
#include "weir/counters.def"
  kCount,
};
inline constexpr size_t kClassCounters =
    static_cast<size_t>(ClassCounter::kCount);
inline constexpr size_t kCounters = static_cast<size_t>(Counter::kCount);

// Who owns a shard.  A pid alone can be used again; with the process's start
// time it names one process.  pid 0: nobody.
struct ProcessId {
  int32_t pid = 0;
  uint32_t start = 0;  // Low bits of the start time; the host's unit.
  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

struct Region {
  // Workers at a time, old and new ones of a reload together.  Chosen: twice
  // the threads of a large machine, and a change of all of them at once.
  static constexpr size_t kShards = 512;
  static_assert(kShards <= Ledger::kAccounts);
  static constexpr size_t kLine = 64;  // Bytes of a cache line.
  static constexpr uint64_t kMagic = 0x31'6e'6f'69'67'65'72'77;  // "wregion1"
  static constexpr uint32_t kVersion = 3;

  template <typename T>
  using Shared = weir::Shared<T>;
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  static_assert(std::atomic<double>::is_always_lock_free);

  // What tells this region's hashes from all others', so that nobody can work
  // out which clients share a place.
  using Secret = std::array<uint64_t, 2>;

  struct Header {
    Shared<uint64_t> magic;  // Written last; without it there is no region.
    uint32_t version;
    uint32_t size;
    uint64_t layout;  // Hash of every offset and of the counters' names.
    std::array<char, kMaxNameBytes + 1> service;
    Shared<uint64_t> policy_version;  // Grows with each policy that is applied.
    Secret secret;
    // Tells this region from any other, wherever it is mapped; 0 on the heap
    // of one process, where its address does.
    Shared<uint64_t> identity;
    Shared<int32_t> shards_used;  // All that were ever owned lie below.
    // Bit i of word i / 64: shard i is owned; a reader of the shards looks at
    // these.  `members` changes after each change of them.
    alignas(kLine) std::array<Shared<uint64_t>, kShards / 64> claimed;
    Shared<uint64_t> members;
    // Names the pid and time namespaces that its workers live in; 0 on the
    // heap.  Written by who makes the memory shared.
    Shared<uint64_t> namespaces;
  };

  // Each word stands for itself: a reader may meet a mix of two steps.
  struct alignas(kLine) Published {
    Shared<uint64_t> round;
    Shared<int64_t> round_from_ns;
    Shared<int64_t> round_end_ns;
    Shared<int64_t> round_size;
    Shared<int64_t> slots;
    Shared<int64_t> queue_target;
    Shared<int64_t> waiting_bound;
    Shared<uint8_t> mode;      // LawMode
    Shared<uint8_t> standing;  // The overload lasts: Q* may wait.
    alignas(kLine) Shared<double> capacity;
    Shared<double> demand;
    Shared<double> base_latency;     // s
    Shared<double> budget;           // s
    Shared<double> service_latency;  // As LimitLaw::service_latency(), s.
  };

  // Written by any worker, when they change.
  struct alignas(kLine) Flags {
    // Places are scarce: nobody keeps spare ones, and arrivals look at all
    // shards.
    Shared<uint8_t> tight;
    Shared<uint8_t> overloaded;
    Shared<uint64_t> unbound_round;  // The round that was seen to be unbound.
    Shared<int64_t> level;
    Shared<uint64_t> drill;          // Drill, packed; 0: none.
    Shared<uint8_t> retries_abound;  // As RetryShare says.
    Shared<double> retry_ratio;
  };

  // How requests of a drill's resource ended, of each DrillSide.
  struct Drilled {
    std::atomic<uint64_t> started;
    std::atomic<uint64_t> ok;  // In time.
    std::atomic<uint64_t> error;
    std::atomic<uint64_t> late;
    std::atomic<uint64_t> other;       // Cancelled or ignored.
    std::atomic<uint64_t> latency_us;  // Sum over ok, error and late.
  };

  // Taken out by whoever steps the law.
  struct alignas(kLine) Pending {
    Shared<int64_t> arrivals;
    Shared<int64_t> early_arrivals;  // Refused before the level.
    Shared<int64_t> retries;         // Of both.
    Shared<int64_t> refused;         // Requests that left for want of a place.
    Shared<int64_t> budgets;
    Shared<int64_t> budget_us;
    Shared<int64_t> calm;
    Shared<int64_t> calm_ns;
    Shared<int64_t> calm_deviation_ppm;
  };

  struct alignas(kLine) Law {
    Shared<int32_t> turn;     // 1 + the shard that steps; 0: nobody.
    Shared<uint32_t> active;  // The copy that is whole.
    LimitLaw copies[2];       // Only touched by the holder of `turn`.
    RetryShare retries;       // The same.
  };

  struct Resource {
    Shared<uint64_t> hash;     // Of the name; 0: the row is free.
    Shared<uint64_t> by_hand;  // The operator's Switch, packed.
    // What the policy says of it, for those who have no policy.
    Shared<uint8_t> paused;
    Shared<uint8_t> levels;  // How many degrade levels it has.
    Shared<uint8_t> deaf;    // Its switch stage refuses nothing.
    Shared<uint8_t> level;   // What the ladder chose.
    DegradeLadder ladder;    // Only touched by the holder of the turn.
    std::array<Shared<char>, kMaxNameBytes + 1> name;
  };

  // A line for each, so that resources do not slow each other.
  struct alignas(kLine) QuotaCell {
    Quota quota;
    // The policy's that was applied last: while workers follow a change one by
    // one, all of them count in the same windows.
    Shared<int64_t> window_ns;
  };

  // The stages that look at all resources together.
  struct alignas(kLine) Rates {
    Tiers tiers;
    alignas(kLine) SystemRule system;
    // What the host said last, and when; below zero: unknown.
    alignas(kLine) Shared<double> load;
    Shared<double> recent_load;
    Shared<double> cpu_ratio;
    Shared<int64_t> signals_ns;
  };

  struct alignas(kLine) Shard {
    // Line 1: read by other workers when places are scarce.
    Shared<int64_t> inflight;
    std::array<Shared<int32_t>, kCriticalities> waiting;
    // The rows of those that wait, a bit each.
    std::array<Shared<uint64_t>, kCriticalities> waiting_rows;
    Shared<int64_t> oldest_ns;  // When the next to run came, if any waits.
    // The highest rank that waits, in the least critical class that does.
    Shared<uint8_t> worst_rank;
    Shared<uint64_t> owner;  // ProcessId
    // Line 2: the open round.
    alignas(kLine) Shared<uint64_t> round;
    Shared<int64_t> completions;
    Shared<int64_t> late;
    Shared<int64_t> lost;
    Shared<double> latency_sum;
    Shared<double> latency_sq_sum;
    // Places taken of each row, where there are several resources.
    alignas(kLine) std::array<Shared<int32_t>, kMaxResources> running;
    // Counters: nothing is decided by them.
    alignas(kLine) std::array<std::array<std::atomic<uint64_t>, kCriticalities>,
                              kClassCounters> by_class;
    std::array<std::atomic<uint64_t>, kCounters> counters;
    std::array<std::array<std::atomic<uint64_t>, 2>, kMaxResources> resources;
    Histogram latency;      // Of admitted requests: finished - arrived.
    Histogram queue_delay;  // admitted - arrived.
    std::array<Drilled, kDrillSides> drilled;
  };
  // Index of Shard::resources.
  static constexpr size_t kOffered = 0;
  static constexpr size_t kShed = 1;

  // Makes a region in `memory`: zeroed, aligned to kLine, sizeof(Region) bytes,
  // seen by nobody else yet.  Most of it stays untouched, so memory that the
  // system gives when it is written to is not taken before it is needed.
  static Region* Create(void* memory, std::string_view service,
                        const Policy& policy, Instant now,
                        const Secret& secret = {});

  // Null when `memory` (of `size` bytes, aligned) holds a region of this
  // layout; else what is wrong with it.  Trusts nothing that it reads.
  static std::optional<Error> CheckLayout(const void* memory, size_t size);
  static uint64_t LayoutHash();

  // A free shard for `owner`, or nothing when all are taken.  What a former
  // owner counted stays; what it held must have been reclaimed.
  std::optional<int> ClaimShard(ProcessId owner);
  // Gives a shard back.  What it held is taken back as if its owner had died.
  void ReleaseShard(int shard);
  ProcessId Owner(int shard) const;
  // Takes back what the process `dead`, which owned this shard, held, and
  // frees the shard; does nothing when the shard is not (or no longer) its.
  // `self` does it, for its own process.  Returns the inflight taken back.
  int64_t Reclaim(int shard, ProcessId dead, ProcessId self);

  // Calls `visit(index, shard)` for each shard that is owned.
  template <typename Visit>
  void ForEachClaimed(Visit visit) const {
    for (size_t word = 0; word < header.claimed.size(); ++word) {
      for (uint64_t bits = header.claimed[word].load(std::memory_order_acquire);
           bits != 0; bits &= bits - 1) {
        const size_t i =
            64 * word + static_cast<size_t>(std::countr_zero(bits));
        visit(i, shards[i]);
      }
    }
  }

  // The row of a resource, made when it is new; nothing when all are taken.
  std::optional<uint16_t> ResourceRow(std::string_view name);
  // The same, but none is made.
  std::optional<uint16_t> FindResource(std::string_view name) const;

  // Publishes what the law says.  For the holder of the turn, and for Create.
  void Publish(const LimitLaw& law, Instant now);

  // `client`, as the tables of this region know it; 0 stays 0.
  uint64_t Keyed(uint64_t client) const;

  // As far as it is a text: who else may write here could have left any bytes.
  std::string_view service() const {
    return {header.service.begin(),
            std::find(header.service.begin(), header.service.end(), '\0')};
  }

  Header header;
  Published published;
  Flags flags;
  Pending pending;
  Law law;
  std::array<Resource, kMaxResources> resources;
  std::array<QuotaCell, kMaxResources> quotas;  // By row.
  Rates rates;
  Ledger places;     // Held under the limit.
  Ledger in_system;  // Passed the system stage and not ended.
  std::array<Ledger, kCriticalities> queued;
  ClientQuotas client_quotas;
  FairUsage usage;
  std::array<Shard, kShards> shards;
};

// A region on the heap, for one process.
class HeapRegion {
 public:
  HeapRegion(const Policy& policy, Instant now,
             const Region::Secret& secret = {});
  Region& operator*() { return *region_; }
  Region* operator->() { return region_; }
  Region* get() { return region_; }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Free> memory_;
  Region* region_;
};

}  // namespace weir

#endif  // WEIR_REGION_H_
