// AdaptiveThrottle keeps at home what the backend would refuse anyway.
//
//   refused here with probability max(0, (requests - K * accepts) /
//                                        (requests + 1))
//
// over the last two minutes, for each criticality apart.  `requests` is what
// the application asked for, what was refused here included; `accepts` is what
// the backend took, whatever became of it.  A backend that takes A per second
// is then sent K * A: with K = 2 it refuses half of what reaches it, with 1.1
// a tenth.
//
// Source: [SRE2016] chapter 21, equation 21-1.  Three things differ.
//
// A request counts when its fate is known.  The book counts it when it is made,
// and so takes a backend that is merely slow to answer the first ones for one
// that refuses.
//
// After `probe_interval` without a pass, the next request passes, as in
// [GO-ZERO]: the formula alone sends a dead backend one request per window.
//
// What is over is forgotten.  After an outage of a minute the formula would
// refuse for another; but a run of ln(50) / ln(K) accepts (6 when K is 2)
// comes once in fifty requests from a backend that refuses the usual
// share.  So while such a run goes on, nothing is refused, if it has also
// lasted for `probe_interval`: refusals come in bursts.  The next refusal
// brings the history back; when the run has lasted four times as long, it is
// forgotten.  Each tenth of such a run halves the time to the next probe.
//
// A backend that works in windows (so many calls in each second, then none) has
// such runs at the start of each.  Its rhythm is learned: a run must last twice
// as long as the shorter of the last two that a refusal ended.

#ifndef WEIR_CLIENT_ADAPTIVE_THROTTLE_H_
#define WEIR_CLIENT_ADAPTIVE_THROTTLE_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "weir/client/rolling_counts.h"
#include "weir/decision.h"
#include "weir/request.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

// Of one backend.  Threads: any, without locks.  O(1), allocates nothing.
class AdaptiveThrottle {
 public:
  struct Config {
    StageMode mode = StageMode::kEnforce;
    // Source: [SRE2016]: 2 lets news travel fast, 1.1 suits a backend for which
    // refusing costs nearly as much as serving.  [1.01, 10].
    double k = 2;
    Duration window = std::chrono::minutes(2);  // [1 s, 1 h].
    // Nothing is refused while fewer are known: one failure says nothing.
    // Chosen: ten, as long as a run that ends the history.  >= 0.
    int64_t least_requests = 10;
    // Chosen: four looks a second, so that a return is seen within one.
    // [1 ms, 1 min].
    Duration probe_interval = std::chrono::milliseconds(250);

    std::optional<Error> Check() const;
    bool operator==(const Config&) const = default;
  };

  enum class Verdict : uint8_t { kPass, kProbe, kRefuse };

  // `config` must pass its check.
  explicit AdaptiveThrottle(const Config& config);

  // Decides a request that is about to be sent.  kRefuse counts it.
  [[nodiscard]] Verdict Admit(Criticality criticality, Instant now,
                              uint64_t draw);

  // A request that passed was answered (accepted: the backend took it on), or
  // was not in time (not accepted).
  void Learn(Criticality criticality, bool accepted, Instant now);

  // The share of requests that is refused here at the moment, probes aside.
  double RefusalRatio(Criticality criticality, Instant now) const;

  // The formula.
  static double RefusalRatio(double k, int64_t requests, int64_t accepts);

 private:
  struct Class {
    explicit Class(Duration window) : counts(window) {}
    RollingCounts counts;  // Good: accepted; bad: refused there or here.
    std::atomic<int64_t> last_pass{INT64_MIN / 2};   // Only while it refuses.
    std::atomic<int64_t> refused_at{INT64_MIN / 2};  // Last, by the backend.
    std::atomic<int32_t> run{0};                     // Accepts since then.
    // How long the last two long runs lasted that a refusal ended, ns, the
    // newer one first, and when that was.
    std::atomic<int64_t> newer_calm{0};
    std::atomic<int64_t> older_calm{0};
    std::atomic<int64_t> calm_at{INT64_MIN / 2};
  };

  // How long since the last refusal, ns, and how long it must be.
  static int64_t Calm(const Class& cls, Instant now);
  int64_t NeededCalm(const Class& cls, Instant now) const;
  bool TakeProbe(Class& cls, double progress, Instant now) const;
  void NoteRefusal(Class& cls, Instant now) const;

  const Config config_;
  const int32_t long_run_;
  std::array<Class, kCriticalities> classes_;
};

}  // namespace weir

#endif  // WEIR_CLIENT_ADAPTIVE_THROTTLE_H_
