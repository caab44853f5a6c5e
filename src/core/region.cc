#include "weir/region.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "relaxed.h"
#include "weir/splitmix64.h"

namespace weir {
namespace {

constexpr uint64_t kFnvOffset = 0xcbf29ce484222325;
constexpr uint64_t kFnvPrime = 0x100000001b3;

// FNV-1a.  Source: [FNV].
constexpr uint64_t Hash(std::string_view text, uint64_t hash = kFnvOffset) {
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * kFnvPrime;
  }
  return hash;
}

constexpr uint64_t Hash(uint64_t number, uint64_t hash) {
  for (int shift = 0; shift < 64; shift += 8) {
    hash = (hash ^ (number >> shift & 0xff)) * kFnvPrime;
  }
  return hash;
}

constexpr std::string_view kCounterNames =
#define WEIR_CLASS_COUNTER(name, unit, help) #name "/"
#define WEIR_COUNTER(name, unit, help) #name "."
#include "weir/counters.def"
    "";

constexpr uint64_t Pack(ProcessId id) {
  return static_cast<uint64_t>(static_cast<uint32_t>(id.pid)) << 32 | id.start;
}

constexpr ProcessId Unpack(uint64_t word) {
  return {static_cast<int32_t>(word >> 32), static_cast<uint32_t>(word)};
}

}  // namespace

uint64_t Region::LayoutHash() {
  uint64_t hash = Hash(kCounterNames);
  for (const size_t part : {sizeof(Region),
                            sizeof(Header),
                            sizeof(Published),
                            sizeof(Flags),
                            sizeof(Pending),
                            sizeof(Law),
                            sizeof(LimitLaw),
                            sizeof(Resource),
                            sizeof(QuotaCell),
                            sizeof(Rates),
                            sizeof(Ledger),
                            sizeof(ClientQuotas),
                            sizeof(FairUsage),
                            sizeof(Drilled),
                            sizeof(Shard),
                            sizeof(Histogram),
                            offsetof(Region, published),
                            offsetof(Region, flags),
                            offsetof(Region, pending),
                            offsetof(Region, law),
                            offsetof(Region, resources),
                            offsetof(Region, quotas),
                            offsetof(Region, rates),
                            offsetof(Region, places),
                            offsetof(Region, in_system),
                            offsetof(Region, queued),
                            offsetof(Region, client_quotas),
                            offsetof(Region, usage),
                            offsetof(Region, shards),
                            offsetof(Header, secret),
                            offsetof(Header, claimed),
                            offsetof(Shard, round),
                            offsetof(Shard, oldest_ns),
                            offsetof(Shard, worst_rank),
                            offsetof(Shard, by_class),
                            offsetof(Shard, counters),
                            offsetof(Shard, resources),
                            offsetof(Shard, latency),
                            offsetof(Shard, queue_delay),
                            offsetof(Shard, drilled),
                            offsetof(Flags, drill),
                            offsetof(Flags, retry_ratio),
                            offsetof(Pending, retries),
                            sizeof(RetryShare),
                            offsetof(Resource, by_hand),
                            offsetof(Resource, level),
                            offsetof(Resource, ladder),
                            kReasons,
                            kStages,
                            kOutcomes,
                            kCriticalities}) {
    hash = Hash(static_cast<uint64_t>(part), hash);
  }
  return hash;
}

Region* Region::Create(void* memory, std::string_view service,
                       const Policy& policy, Instant now,
                       const Secret& secret) {
  // All but these is valid as zeroes.
  auto* const region = static_cast<Region*>(memory);
  for (Resource& row : region->resources) new (&row.ladder) DegradeLadder;
  for (LimitLaw& copy : region->law.copies) new (&copy) LimitLaw;
  new (&region->law.retries) RetryShare;
  Header& header = region->header;
  header.version = kVersion;
  header.size = sizeof(Region);
  header.layout = LayoutHash();
  header.secret = secret;
  service.copy(header.service.data(), kMaxNameBytes);
  LimitLaw& law = region->law.copies[0];
  law.Reset({.workers = policy.workers,
             .floor = policy.limit_floor,
             .ceiling = policy.limit_ceiling},
            policy.deadline, now);
  region->Publish(law, now);
  header.magic.store(kMagic, std::memory_order_release);
  return region;
}

std::optional<Error> Region::CheckLayout(const void* memory, size_t size) {
  if (size < sizeof(Header)) return Error{"it is too short to be a region"};
  const auto& header = *static_cast<const Header*>(memory);
  if (header.magic.load(std::memory_order_acquire) != kMagic) {
    return Error{"it is not a region, or was left half-made"};
  }
  if (header.version != kVersion || header.layout != LayoutHash()) {
    return Error{"it was made by another version of weir"};
  }
  if (size < sizeof(Region) || header.size != sizeof(Region)) {
    return Error{"it is shorter than its header says"};
  }
  if (header.service.back() != '\0') return Error{"its header is damaged"};
  return std::nullopt;
}

std::optional<int> Region::ClaimShard(ProcessId owner) {
  for (size_t i = 0; i < kShards; ++i) {
    uint64_t nobody = 0;
    if (!shards[i].owner.compare_exchange_strong(nobody, Pack(owner))) continue;
    const auto used = static_cast<int32_t>(i) + 1;
    int32_t seen = header.shards_used.load();
    while (seen < used &&
           !header.shards_used.compare_exchange_weak(seen, used)) {
    }
    header.claimed[i / 64].fetch_or(uint64_t{1} << i % 64);
    header.members.fetch_add(1);
    return static_cast<int>(i);
  }
  return std::nullopt;
}

ProcessId Region::Owner(int shard) const {
  return Unpack(shards[static_cast<size_t>(shard)].owner.load());
}

void Region::ReleaseShard(int shard) {
  const ProcessId owner = Owner(shard);
  Reclaim(shard, owner, owner);
}

int64_t Region::Reclaim(int shard, ProcessId dead, ProcessId self) {
  // First the shard becomes ours: of several who see the death one goes on,
  // nobody can claim the shard meanwhile, and should we die here as well it is
  // the shard of a dead process again.
  Shard& s = shards[static_cast<size_t>(shard)];
  uint64_t expected = Pack(dead);
  if (dead.pid == 0 || !s.owner.compare_exchange_strong(expected, Pack(self))) {
    return 0;
  }
  const auto i = static_cast<size_t>(shard);
  int32_t turn = shard + 1;
  law.turn.compare_exchange_strong(turn, 0);
  for (size_t c = 0; c < kCriticalities; ++c) {
    s.waiting[c].store(0);
    s.waiting_rows[c].store(0);
    queued[c].Close(i);
  }
  for (auto& running : s.running) running.store(0);
  const int64_t taken_back = s.inflight.exchange(0);
  places.Close(i);
  in_system.Close(i);
  if (taken_back > 0) {
    s.counters[static_cast<size_t>(Counter::reclaimed_total)].fetch_add(
        static_cast<uint64_t>(taken_back));
  }
  header.claimed[i / 64].fetch_and(~(uint64_t{1} << i % 64));
  header.members.fetch_add(1);
  s.owner.store(0);
  return taken_back;
}

uint64_t Region::Keyed(uint64_t client) const {
  if (client == 0) return 0;
  const uint64_t keyed =
      Mix64(Mix64(client ^ header.secret[0]) + header.secret[1]);
  return keyed == 0 ? 1 : keyed;
}

std::optional<uint16_t> Region::ResourceRow(std::string_view name) {
  const uint64_t hash = std::max<uint64_t>(Hash(name), 1);
  for (size_t i = 0; i < kMaxResources; ++i) {
    Resource& row = resources[i];
    uint64_t seen = 0;
    if (row.hash.compare_exchange_strong(seen, hash) || seen == hash) {
      // Whoever races here writes the same bytes.
      for (size_t j = 0; j < name.size() && j < kMaxNameBytes; ++j) {
        row.name[j].store(name[j], kRelaxed);
      }
      return static_cast<uint16_t>(i);
    }
  }
  return std::nullopt;
}

std::optional<uint16_t> Region::FindResource(std::string_view name) const {
  const uint64_t hash = std::max<uint64_t>(Hash(name), 1);
  for (size_t i = 0; i < kMaxResources; ++i) {
    if (resources[i].hash.load(kRelaxed) == hash) {
      return static_cast<uint16_t>(i);
    }
  }
  return std::nullopt;
}

void Region::Publish(const LimitLaw& l, Instant now) {
  const auto count = [](double n) {
    return n < 1e15 ? static_cast<int64_t>(n) : int64_t{1'000'000'000'000'000};
  };
  const auto ns = [](Instant t) { return t.time_since_epoch().count(); };
  published.capacity.store(l.capacity, kRelaxed);
  published.demand.store(l.demand.rate(), kRelaxed);
  published.base_latency.store(l.base_latency, kRelaxed);
  published.budget.store(l.budget, kRelaxed);
  published.service_latency.store(l.service_latency(), kRelaxed);
  published.mode.store(static_cast<uint8_t>(l.mode.index()), kRelaxed);
  published.round_size.store(l.round_size(), kRelaxed);
  published.round_end_ns.store(ns(l.round_end()), kRelaxed);
  published.round_from_ns.store(ns(l.round_from), kRelaxed);
  published.standing.store(l.demand.standing(now), kRelaxed);
  published.queue_target.store(count(l.queue_target()), kRelaxed);
  published.waiting_bound.store(count(l.waiting_bound(now)), kRelaxed);
  published.slots.store(l.slots(), kRelaxed);
  published.round.store(l.round, std::memory_order_release);
}

// calloc() and not aligned_alloc(): pages that nobody writes to are not taken,
// and most of a region's belong to workers that never come.
HeapRegion::HeapRegion(const Policy& policy, Instant now,
                       const Region::Secret& secret)
    : memory_(std::calloc(1, sizeof(Region) + Region::kLine)) {
  if (memory_ == nullptr) throw std::bad_alloc();
  void* aligned = memory_.get();
  size_t space = sizeof(Region) + Region::kLine;
  std::align(Region::kLine, sizeof(Region), aligned, space);
  region_ = Region::Create(aligned, policy.service, policy, now, secret);
}

void HeapRegion::Free::operator()(void* memory) const { std::free(memory); }

}  // namespace weir
