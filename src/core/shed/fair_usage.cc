#include "weir/shed/fair_usage.h"

#include <algorithm>
#include <bit>

#include "weir/splitmix64.h"

namespace weir {
namespace {

constexpr uint32_t Milliseconds(Instant now) {
  return static_cast<uint32_t>(now.time_since_epoch().count() / 1'000'000);
}

float DecayedCount(uint64_t cell, uint32_t now_ms) {
  const float count = std::bit_cast<float>(static_cast<uint32_t>(cell >> 32));
  const auto elapsed =
      static_cast<int32_t>(now_ms - static_cast<uint32_t>(cell));
  // Another worker's clock reading may be a little ahead of ours.
  if (elapsed <= 0) return count;
  constexpr auto kMemoryMs =
      static_cast<float>(FairUsage::kMemory.count() / 1'000'000);
  return count * (kMemoryMs / (kMemoryMs + static_cast<float>(elapsed)));
}

}  // namespace

std::atomic<uint64_t>& FairUsage::Cell(size_t row, uint64_t client) {
  return cells_[row][Mix64(client + row) % kCells];
}

const std::atomic<uint64_t>& FairUsage::Cell(size_t row,
                                             uint64_t client) const {
  return cells_[row][Mix64(client + row) % kCells];
}

void FairUsage::Add(uint64_t client, Instant now) {
  if (client == 0) return;
  const uint32_t ms = Milliseconds(now);
  for (size_t row = 0; row < kRows; ++row) {
    std::atomic<uint64_t>& cell = Cell(row, client);
    const float count =
        DecayedCount(cell.load(std::memory_order_relaxed), ms) + 1;
    cell.store(static_cast<uint64_t>(std::bit_cast<uint32_t>(count)) << 32 | ms,
               std::memory_order_relaxed);
  }
}

double FairUsage::Usage(uint64_t client, Instant now) const {
  if (client == 0) return 0;
  const uint32_t ms = Milliseconds(now);
  float least =
      DecayedCount(Cell(0, client).load(std::memory_order_relaxed), ms);
  for (size_t row = 1; row < kRows; ++row) {
    least = std::min(
        least,
        DecayedCount(Cell(row, client).load(std::memory_order_relaxed), ms));
  }
  return least;
}

uint8_t FairUsage::Level(uint64_t client, Instant now) const {
  const auto usage = static_cast<uint64_t>(1 + Usage(client, now));
  return static_cast<uint8_t>(
      std::min<int>(std::bit_width(usage) - 1, kMaxLevel));
}

}  // namespace weir
