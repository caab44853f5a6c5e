// ClientQuotas holds each client to a number of calls in a window, in fixed
// memory, whoever and however many they are.
//
// 262 144 places in sets of sixteen, 4 MiB; a client has a place in the set
// that its hash names.  A client without one takes that of the client of the
// set with the fewest calls, and its count with it (Space-Saving).  Within a
// window the fewest of a set never falls, so who lost his place and comes back
// finds at least the count he had: nobody gains a fresh quota by being
// forgotten, and nobody passes more than his calls.
//
// The price is on the other side: a client can be refused for calls that others
// made, but only while sixteen others of its set call in the same window.  Of n
// clients of a window that is so for the share P(Poisson(n / 16384) >= 16) at
// most:
//
//   n        50 000   75 000   100 000   150 000   200 000   300 000
//   share    2e-7     3e-5     7e-4      .03       .18       .74
//
// Those are the bounds for clients that all spend what they have;
// docs/policy.md says them.  Which clients share a set nobody can work out who
// does not know the region's secret (Region::Keyed), so a set is not to be
// filled on purpose but by filling all of them.
//
// Windows are fixed: up to twice the calls can fall into a span that crosses an
// edge.  A call counts when it is admitted and is given back when a later stage
// refuses it.
//
// Source: [METWALLY2005], the Stream-Summary's replacement rule; sets instead
// of one list ordered by count, so that a step is O(1) without locks.
//
// Threads and processes: any.  Lock-free, valid when zeroed.  O(1), four lines
// of memory.  Of two calls that bring the same new client at once one may take
// a second place for it; then that client has up to two quotas in this window.

#ifndef WEIR_RATE_CLIENT_QUOTAS_H_
#define WEIR_RATE_CLIENT_QUOTAS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weir/rate/window_word.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

class ClientQuotas {
 public:
  static constexpr size_t kWays = 16;
  static constexpr size_t kSets = 16384;
  static constexpr Duration kShortestWindow = std::chrono::milliseconds(10);
  static constexpr Duration kLongestWindow = std::chrono::hours(24);
  static constexpr int64_t kMostCalls = 2'000'000'000;

  struct Config {
    int64_t calls = 0;  // [1, kMostCalls]
    Duration window = std::chrono::minutes(1);

    bool operator==(const Config&) const = default;
  };

  struct Answer {
    bool admitted = false;
    uint32_t window = 0;     // For GiveBack().
    Duration retry_after{};  // Refused: until the window ends.
  };

  static std::optional<Error> Check(const Config& config);

  // Decides one call of `client` and counts it if it is admitted.  Client 0 is
  // "unknown": always admitted, never counted.
  [[nodiscard]] Answer Take(const Config& config, uint64_t client, Instant now);

  // A call that was counted in `window` does not run after all.  Nothing
  // happens if the window is over or the client has lost its place.
  void GiveBack(uint64_t client, uint32_t window);

  // Calls that count for it now, its own and inherited ones; 0 without a place.
  int64_t Counted(const Config& config, uint64_t client, Instant now) const;

 private:
  using Word = WindowWord<32>;
  struct Place {
    Shared<uint64_t> client;
    Word calls;
  };
  struct alignas(64) Set {
    std::array<Place, kWays> places;
  };

  Set& SetOf(uint64_t client);
  static Place* Find(Set& set, uint64_t client);
  static Place& Claim(Set& set, uint64_t client, uint64_t window);

  std::array<Set, kSets> sets_;
};

}  // namespace weir

#endif  // WEIR_RATE_CLIENT_QUOTAS_H_
