#include "weir/degrade/drill.h"

#include "weir/splitmix64.h"

namespace weir {
namespace {

constexpr int kUntilBits = 40;  // 34 years of milliseconds.
constexpr uint64_t kUntilMask = (uint64_t{1} << kUntilBits) - 1;
constexpr int kLevelBits = 3;
constexpr int kRowBits = 6;
static_assert(kRowBits + kLevelBits + Drill::kShareBits + kUntilBits <= 64);

uint64_t Shuffled(uint64_t x) { return Mix64(x + kGoldenGamma); }

int64_t EndMs(Instant t) {
  return (t.time_since_epoch().count() + 999'999) / 1'000'000;
}

}  // namespace

bool Drill::Takes(const Request& request) const {
  const auto arrived =
      static_cast<uint64_t>(request.arrived.time_since_epoch().count());
  const uint64_t hash = Shuffled(Shuffled(Shuffled(arrived) ^ request.client) ^
                                 static_cast<uint64_t>(EndMs(until)));
  return hash >> (64 - kShareBits) < share;
}

uint64_t Drill::Pack() const {
  if (level == 0) return 0;
  // A share of kWhole is kept as 0, which is no share.
  return static_cast<uint64_t>(row) << (kLevelBits + kShareBits + kUntilBits) |
         static_cast<uint64_t>(level) << (kShareBits + kUntilBits) |
         static_cast<uint64_t>(share % kWhole) << kUntilBits |
         (static_cast<uint64_t>(EndMs(until)) & kUntilMask);
}

Drill Drill::Unpack(uint64_t word) {
  if (word == 0) return {};
  const uint64_t share = word >> kUntilBits & (kWhole - 1);
  return {.row = static_cast<uint16_t>(word >>
                                       (kLevelBits + kShareBits + kUntilBits)),
          .level = static_cast<uint8_t>(word >> (kShareBits + kUntilBits) &
                                        ((1U << kLevelBits) - 1)),
          .share = share == 0 ? kWhole : static_cast<uint32_t>(share),
          .until = Instant(std::chrono::milliseconds(word & kUntilMask))};
}

}  // namespace weir
