#include "weir/snapshot.h"

#include "relaxed.h"

namespace weir {

#define WEIR_CLASS_COUNTER(name, unit, help) CounterInfo{#name, #unit, help},
const std::array<CounterInfo, kClassCounters> kClassCounterInfo = {
#include "weir/counters.def"
};
#define WEIR_COUNTER(name, unit, help) CounterInfo{#name, #unit, help},
const std::array<CounterInfo, kCounters> kCounterInfo = {
#include "weir/counters.def"
};
#define WEIR_GAUGE(name, unit, help) CounterInfo{#name, #unit, help},
const std::array<CounterInfo, kGauges> kGaugeInfo = {
#include "weir/counters.def"
};

namespace {

void ReadShard(const Region::Shard& shard, Snapshot& out) {
  out.inflight += shard.inflight.load(kRelaxed);
  for (size_t c = 0; c < kCriticalities; ++c) {
    out.waiting[c] += shard.waiting[c].load(kRelaxed);
    for (size_t i = 0; i < kClassCounters; ++i) {
      out.by_class[i][c] += shard.by_class[i][c].load(kRelaxed);
    }
  }
  for (size_t i = 0; i < kCounters; ++i) {
    out.counters[i] += shard.counters[i].load(kRelaxed);
  }
  shard.latency.AddTo(out.latency);
  shard.queue_delay.AddTo(out.queue_delay);
  for (size_t side = 0; side < kDrillSides; ++side) {
    const Region::Drilled& from = shard.drilled[side];
    Snapshot::Drilled& to = out.drilled[side];
    to.started += from.started.load(kRelaxed);
    to.ok += from.ok.load(kRelaxed);
    to.error += from.error.load(kRelaxed);
    to.late += from.late.load(kRelaxed);
    to.other += from.other.load(kRelaxed);
    to.latency_us += from.latency_us.load(kRelaxed);
  }
}

void ReadGauges(const Region& region, Snapshot& out) {
  const Region::Published& p = region.published;
  const auto set = [&](Gauge gauge, double value) {
    out.gauges[static_cast<size_t>(gauge)] = value;
  };
  set(Gauge::limit, static_cast<double>(p.slots.load(kRelaxed)));
  set(Gauge::capacity_per_s, p.capacity.load(kRelaxed));
  set(Gauge::demand_per_s, p.demand.load(kRelaxed));
  set(Gauge::base_latency_us, p.base_latency.load(kRelaxed) * 1e6);
  set(Gauge::budget_us, p.budget.load(kRelaxed) * 1e6);
  set(Gauge::queue_target, static_cast<double>(p.queue_target.load(kRelaxed)));
  set(Gauge::overloaded, region.flags.overloaded.load(kRelaxed));
  set(Gauge::retry_ratio, region.flags.retry_ratio.load(kRelaxed));
  set(Gauge::law_mode, p.mode.load(kRelaxed));
  set(Gauge::level, static_cast<double>(region.flags.level.load(kRelaxed)));
}

// The characters of a policy's names alone: in another user's segment there may
// be others, and some speak to the reader's terminal.
char Printable(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9');
  return letter || c == '-' || c == '.' || c == '_' || c == '/' ? c : '?';
}

std::string ReadName(const Region::Resource& row) {
  std::string name;
  for (const auto& c : row.name) {
    const char value = c.load(kRelaxed);
    if (value == '\0') break;
    name.push_back(Printable(value));
  }
  return name;
}

}  // namespace

Snapshot Read(const Region& region) {
  Snapshot out;
  for (const char c : region.service()) out.service.push_back(Printable(c));
  out.policy_version = region.header.policy_version.load(kRelaxed);
  ReadGauges(region, out);
  out.drill = Drill::Unpack(region.flags.drill.load(kRelaxed));
  for (const Region::Resource& row : region.resources) {
    if (row.hash.load(kRelaxed) == 0) break;
    out.resources.push_back(
        {.name = ReadName(row),
         .paused = row.paused.load(kRelaxed) != 0,
         .deaf = row.deaf.load(kRelaxed) != 0,
         .by_hand = Switch::Unpack(row.by_hand.load(kRelaxed)),
         .levels = row.levels.load(kRelaxed),
         .level = row.level.load(kRelaxed)});
  }
  const auto used =
      static_cast<size_t>(region.header.shards_used.load(kRelaxed));
  for (size_t i = 0; i < used && i < Region::kShards; ++i) {
    const Region::Shard& shard = region.shards[i];
    ReadShard(shard, out);
    for (size_t r = 0; r < out.resources.size(); ++r) {
      out.resources[r].offered +=
          shard.resources[r][Region::kOffered].load(kRelaxed);
      out.resources[r].shed += shard.resources[r][Region::kShed].load(kRelaxed);
    }
    const ProcessId owner = region.Owner(static_cast<int>(i));
    if (owner.pid == 0) continue;
    int64_t waiting = 0;
    for (const auto& w : shard.waiting) waiting += w.load(kRelaxed);
    out.workers.push_back({.shard = static_cast<int>(i),
                           .owner = owner,
                           .inflight = shard.inflight.load(kRelaxed),
                           .waiting = waiting});
  }
  return out;
}

}  // namespace weir
