// CircuitBreaker stops calling a backend that fails or is far too slow.
//
//              too many of the last calls went wrong
//     closed ------------------------------------------> open
//        ^                                               |  ^
//        | `probes` calls                    `open_for`  |  | one call
//        | went well                          is over    v  | went wrong
//        +------------------------------------------- half-open
//
// Wrong is an error, a timeout, or a call slower than `slow_call`.  A refusal
// is none, wherever it was decided: overload is the throttle's business, and a
// breaker that counts refusals keeps itself open.
//
// Half-open lets at most `probes` calls run at a time, each under a lease: one
// that is never ended frees its place when the lease is over.  A call that
// ends after the breaker has moved on counts for nothing.
//
// The time spent open begins at `open_for` and doubles, up to
// `open_for_ceiling`, each time that the breaker opens again within
// `open_for_ceiling + open_for` of having been closed.
//
// Source: [BRPC] circuit breaker, for that doubling and for what does not
// count; leases are ours.
//
// A backend that cannot even be reached is gone, whatever it did before: a
// handful of such calls in a row opens it, without waiting for half of all.

#ifndef WEIR_CLIENT_CIRCUIT_BREAKER_H_
#define WEIR_CLIENT_CIRCUIT_BREAKER_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/client/rolling_counts.h"
#include "weir/decision.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

// Of one backend.  Threads: any, without locks.  O(1), allocates nothing.
class CircuitBreaker {
 public:
  static constexpr int32_t kMaxProbes = 16;

  struct Config {
    StageMode mode = StageMode::kEnforce;
    // Share of bad calls that opens it.  Source: [SENTINEL], whose examples
    // have 0.5.  (0, 1].
    double failure_ratio = 0.5;
    Duration window = std::chrono::seconds(10);  // [100 ms, 1 h].
    // Nothing is decided on fewer calls.  Chosen: at a true share of a tenth,
    // half of 20 are bad once in 10^6 windows.  >= 1.
    int64_t least_calls = 20;
    // So many in a row that did not reach the backend open it at once.  Chosen:
    // one or two can be a connection that was just replaced.  >= 1.
    int32_t unreached = 5;
    // Calls that took longer are bad; zero: however long.
    Duration slow_call{};
    // Chosen: so that a return is seen within a second; a few probes every half
    // second cost a backend nothing that is gone.  Raise the ceiling for one
    // that a probe hurts.  0 < open_for <= open_for_ceiling.
    Duration open_for = std::chrono::milliseconds(250);
    Duration open_for_ceiling = std::chrono::milliseconds(500);
    int32_t probes = 3;                               // [1, kMaxProbes].
    Duration probe_lease = std::chrono::seconds(10);  // > 0.

    std::optional<Error> Check() const;
    bool operator==(const Config&) const = default;
  };

  enum class State : uint8_t { kClosed, kOpen, kHalfOpen };

  // The right to call.  One that is lost is harmless.
  struct Pass {
    bool allowed = false;
    int8_t place = -1;   // Of a probe; else -1.
    uint32_t epoch = 0;  // How often the breaker had changed its state.
    bool probe() const { return place >= 0; }
    int64_t lease_until_ns = 0;
  };

  enum class Result : uint8_t {
    kGood,
    kBad,
    kUnreached,  // Bad, and was never sent.
    kNothing,    // Refused, cancelled, not sent after all: says nothing.
  };

  explicit CircuitBreaker(const Config& config);

  [[nodiscard]] Pass Admit(Instant now);

  // Ends a call.  `took` is how long it ran.
  void Finish(const Pass& pass, Result result, Duration took, Instant now);

  State state(Instant now) const;
  // When it will be half-open; only while it is open.
  Instant opens_until() const;

 private:
  // How often it has changed its state, and, while it is open, until when (ms):
  // one word, so that nobody sees the one without the other.  Even: closed.
  // Odd: open or, once that time is over, half-open.  A pass of another epoch
  // comes too late to matter.
  struct Word {
    static constexpr int kEpochBits = 22;
    uint64_t bits = 0;
    uint32_t epoch() const {
      return static_cast<uint32_t>(bits & ((uint64_t{1} << kEpochBits) - 1));
    }
    bool closed() const { return epoch() % 2 == 0; }
    Instant until() const {
      return Instant(std::chrono::milliseconds(bits >> kEpochBits));
    }
  };
  static Word MakeWord(uint32_t epoch, Instant until);

  void FinishProbe(Word word, const Pass& pass, bool good, Instant now);
  void Open(Word word, Instant now);
  void Close(Word word, Instant now);
  Word Load() const { return {word_.load(std::memory_order_acquire)}; }

  const Config config_;
  RollingCounts counts_;
  std::atomic<uint64_t> word_{0};
  std::atomic<int64_t> closed_at_{INT64_MIN / 2};
  std::atomic<int64_t> open_for_{0};  // The last time spent open, ns.
  std::atomic<int32_t> good_probes_{0};
  std::atomic<int32_t> unreached_{0};  // In a row, while it is closed.
  // Of half-open: when the lease of each place is over, ns; after everything
  // when its probe went well.
  std::array<std::atomic<int64_t>, kMaxProbes> leases_{};
};

}  // namespace weir

#endif  // WEIR_CLIENT_CIRCUIT_BREAKER_H_
