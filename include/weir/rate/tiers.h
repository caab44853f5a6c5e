// Tiers drop a share of the surplus, the more the higher the rate.
//
//   max = 40 000 in a window, tiers (70 %, 20 %), (80 %, 50 %), (100 %, 100 %):
//
//   request number n of a window    dropped
//        1 to 28 000                none
//   28 001 to 32 000                20 %
//   32 001 to 40 000                50 %
//   40 001 on                       all
//
// Only the part of the requests above a tier's limit is dropped at its share.
// So of r requests in a window
//
//   f(r) = r - sum over tiers of drop * (r's part in the tier)
//
// are admitted.  Every request counts, dropped ones too.
//
//   window   the number n decides: what comes late in a window is dropped
//   smooth   r is the count of the window that ends now, in ten parts, and each
//            request is dropped with the share 1 - f(r) / r: the same total,
//            spread evenly over time
//   even     shares are exact: of k requests in a tier floor(k * drop) are
//            dropped, at equal distances (error diffusion)
//   random   each request is dropped with the tier's share, independently
//
// Source: docs/algorithms/tiers.md, with the faults of the original.

#ifndef WEIR_RATE_TIERS_H_
#define WEIR_RATE_TIERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weir/rate/window_word.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

// What is configured, worked out once.  Immutable.
class TierTable {
 public:
  static constexpr size_t kMostTiers = 8;
  static constexpr int64_t kMostMax = 1'000'000'000;

  struct Tier {
    int32_t limit_percent = 0;  // Of `max`; [0, 1000].
    int32_t drop_percent = 0;   // Of the surplus above; [0, 100].
    bool operator==(const Tier&) const = default;
  };
  struct Config {
    int64_t max = 0;          // Requests in a window; 1 to kMostMax.
    std::vector<Tier> tiers;  // 1 to kMostTiers, limits strictly rising.
    Duration window = std::chrono::seconds(1);  // 100 ms to 10 s.
    bool smooth = false;
    bool random = false;
    bool operator==(const Config&) const = default;
  };

  static std::optional<Error> Check(const Config& config);

  TierTable() = default;                     // Drops nothing.
  explicit TierTable(const Config& config);  // Must pass Check().

  struct Place {
    int32_t drop_percent = 0;
    int64_t rank = 0;  // Within the tier, from 1.
  };
  // Of request number `n` of a window, n >= 1.
  Place Find(int64_t n) const;

  // f(r) * 100, exactly.
  int64_t AdmittedPercent(int64_t r) const;

  Duration window() const { return window_; }
  bool smooth() const { return smooth_; }
  bool random() const { return random_; }

 private:
  // Bounds beyond the last tier are at the end of the numbers.
  std::array<int64_t, kMostTiers + 1> bounds_{};
  std::array<int32_t, kMostTiers> drops_{};
  size_t count_ = 0;
  Duration window_ = std::chrono::seconds(1);
  bool smooth_ = false;
  bool random_ = false;
};

// The counts.  Threads and processes: any.  Lock-free, valid when zeroed; a
// table may be exchanged for another at any time, and the window goes on.
class Tiers {
 public:
  static constexpr int kParts = 10;  // Of the window, when smooth.

  struct Answer {
    bool admitted = true;
    int64_t number = 0;      // Which of the window this is, or r when smooth.
    double drop_ratio = 0;   // Share that is dropped here.
    Duration retry_after{};  // Until the window's end; zero when admitted.
  };

  // Counts one request at `now` and decides it.  O(tiers), about 20 ns smooth.
  [[nodiscard]] Answer Offer(const TierTable& table, Instant now,
                             uint64_t random);

  // What a request would meet now, without counting it.  Where a share is
  // dropped, `admitted` says whether it is less than all.
  Answer Peek(const TierTable& table, Instant now) const;

 private:
  using Word = WindowWord<32>;
  int64_t Recent(const TierTable& table, Instant now) const;

  Word rank_;
  std::array<Word, kParts + 1> parts_;
  // Whole requests to drop that the shares so far add up to, times 2^32.
  Shared<uint64_t> owed_{0};
};

}  // namespace weir

#endif  // WEIR_RATE_TIERS_H_
