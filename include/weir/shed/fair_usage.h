// FairUsage remembers how much each client has used lately, in fixed memory.
//
// Of each client it keeps a count of its dispatched requests that decays with
// a memory of one second.  Clients share cells of two rows; the smaller cell
// is believed (a count-min sketch), so a client can seem to have used more
// than it did, never less.  With 4096 cells a row, one heavy client spoils a
// light one's estimate with a probability of (1/4096)^2.
//
// Source: [COUNTMIN] for the sketch.  The decay is 1 / (1 + dt / 1 s) for each
// step, which needs no exp() and tends to it for small steps.
//
// Threads and processes: any.  Updates that race can lose one another, which
// forgets a request or two of thousands; nothing else can go wrong.

#ifndef WEIR_SHED_FAIR_USAGE_H_
#define WEIR_SHED_FAIR_USAGE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weir/time.h"

namespace weir {

class FairUsage {
 public:
  static constexpr size_t kRows = 2;
  static constexpr size_t kCells = 4096;
  static constexpr Duration kMemory = std::chrono::seconds(1);
  // Highest level: a client with 2^20 requests within the memory.
  static constexpr uint8_t kMaxLevel = 20;

  // Counts one dispatched request.  Client 0 is "unknown" and not counted.
  void Add(uint64_t client, Instant now);

  // floor(log2(1 + usage)), at most kMaxLevel; 0 for client 0.
  uint8_t Level(uint64_t client, Instant now) const;

  // Decayed count of requests.
  double Usage(uint64_t client, Instant now) const;

 private:
  // High half: count as a float; low half: when, in ms modulo 2^32.
  std::atomic<uint64_t>& Cell(size_t row, uint64_t client);
  const std::atomic<uint64_t>& Cell(size_t row, uint64_t client) const;

  std::array<std::array<std::atomic<uint64_t>, kCells>, kRows> cells_{};
};

}  // namespace weir

#endif  // WEIR_SHED_FAIR_USAGE_H_
