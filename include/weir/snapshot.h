// A reading of a region: what `weir top` and the exporters show.

#ifndef WEIR_SNAPSHOT_H_
#define WEIR_SNAPSHOT_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/region.h"

namespace weir {

// The gauges of counters.def, in their order.
enum class Gauge : size_t {
#define WEIR_GAUGE(name, unit, help) name,
#include "weir/counters.def"
  kCount,
};
inline constexpr size_t kGauges = static_cast<size_t>(Gauge::kCount);

struct CounterInfo {
  std::string_view name;
  std::string_view unit;
  std::string_view help;
};
extern const std::array<CounterInfo, kClassCounters> kClassCounterInfo;
extern const std::array<CounterInfo, kCounters> kCounterInfo;
extern const std::array<CounterInfo, kGauges> kGaugeInfo;

struct Snapshot {
  struct Resource {
    std::string name;
    bool paused = false;  // By the policy.
    uint64_t offered = 0;
    uint64_t shed = 0;
    bool deaf = false;   // Its switch stage refuses nothing.
    Switch by_hand{};    // Maybe over.
    uint8_t levels = 0;  // Degrade levels that it has.
    uint8_t level = 0;   // What its ladder chose.
  };
  struct Worker {
    int shard = 0;
    ProcessId owner;
    int64_t inflight = 0;
    int64_t waiting = 0;
  };

  // How requests of a drill ended, of one DrillSide; see Region::Drilled.
  struct Drilled {
    uint64_t started = 0;
    uint64_t ok = 0;
    uint64_t error = 0;
    uint64_t late = 0;
    uint64_t other = 0;
    uint64_t latency_us = 0;
  };

  std::string service;
  uint64_t policy_version = 0;
  int64_t inflight = 0;
  std::array<int64_t, kCriticalities> waiting{};
  std::array<std::array<uint64_t, kCriticalities>, kClassCounters> by_class{};
  std::array<uint64_t, kCounters> counters{};
  std::array<double, kGauges> gauges{};
  Histogram::Counts latency{};
  Histogram::Counts queue_delay{};
  Drill drill{};  // Maybe over.
  std::array<Drilled, kDrillSides> drilled{};
  std::vector<Resource> resources;
  std::vector<Worker> workers;  // Owned shards.

  uint64_t operator[](Counter c) const {
    return counters[static_cast<size_t>(c)];
  }
  double operator[](Gauge g) const { return gauges[static_cast<size_t>(g)]; }
  const std::array<uint64_t, kCriticalities>& operator[](ClassCounter c) const {
    return by_class[static_cast<size_t>(c)];
  }
};

// Sums up the shards.  Each number is whole; together they are of about the
// same instant, not of exactly one.  Some tens of microseconds.
Snapshot Read(const Region& region);

}  // namespace weir

#endif  // WEIR_SNAPSHOT_H_
