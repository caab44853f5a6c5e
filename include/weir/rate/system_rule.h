// SystemRule refuses by six thresholds of the whole service, in this order:
//
//   qps      passed in the window, this one too, > qps
//   threads  inflight > threads
//   executor_load  requests that run, smoothed, > executor_load
//   latency  mean latency > latency
//   load     load > load, and the capacity check fails
//   cpu      cpu > cpu
//
// The capacity check (BBR) compares inflight with what the service can hold
// by Little's law; it fails when
//
//   inflight > 1 and inflight > best completions per second * least latency
//
// The executor load is not of the original but of the SRE book [SRE2016].
//
// As the original, bit for bit: the window is 1 s in two aligned halves, the
// current, partial one included; "best" is the fuller half's completions, at
// least 1, times two; "least" the smallest single latency in whole
// milliseconds, from 1 to 5000.  Inflight is compared before the request itself
// counts, so threads + 1 pass.  Failures are completions.  Load is the
// kernel's, averaged over a minute.  The CPU arm has no check.
//
// `robust` is the same rule without its dangers:
//   - load is what is runnable now (RecentLoad), not the minute's average;
//   - "least" is the least mean of a half second in the last 10 s, and
//     nothing is learned for it while the rule is armed: a fast endpoint or a
//     fast failure does not pull it down, a standing queue does not push it up;
//   - "best" leaves the partial half out and looks at 10 s;
//   - the CPU arm has the check too, so that it never refuses everything;
//   - never more than threads run, and no quick failure teaches.
//
// Source: [SENTINEL] SystemRuleManager.java and its statistic nodes at d75a668;
// docs/algorithms/system.md.
//
// Threads and processes: any.  Lock-free, valid when zeroed.  O(1); robust,
// while armed, some 20 words are read.

#ifndef WEIR_RATE_SYSTEM_RULE_H_
#define WEIR_RATE_SYSTEM_RULE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "weir/rate/window_word.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

class SystemRule {
 public:
  // Thresholds; infinity leaves an arm out.
  struct Config {
    static constexpr double kOff = std::numeric_limits<double>::infinity();
    double qps = kOff;            // Requests per second.
    double threads = kOff;        // Requests inflight.
    double executor_load = kOff;  // Requests that run, smoothed.
    double latency_ms = kOff;     // Mean.
    double load = kOff;           // Runnable threads of the machine.
    double cpu_ratio = kOff;      // [0, 1], of what the service may use.
    bool robust = false;

    bool any() const {
      return qps < kOff || threads < kOff || executor_load < kOff ||
             latency_ms < kOff || load < kOff || cpu_ratio < kOff;
    }
    bool operator==(const Config&) const = default;
  };

  // Below zero: unknown, and the arm is inert.
  struct Signals {
    double load = -1;
    double recent_load = -1;  // For `robust`.
    double cpu_ratio = -1;
    double executor_load = -1;
  };

  enum class Cause : uint8_t {
    kNone,
    kQps,
    kThreads,
    kLatency,
    kLoad,
    kCpu,
    kExecutorLoad,
  };

  struct Answer {
    Cause cause = Cause::kNone;  // kNone: it passes, and counts.
    uint32_t window = 0;         // For GiveBack().
    bool admitted() const { return cause == Cause::kNone; }
  };

  // What the rule measures, as it stands at `now`.
  struct Figures {
    double passed_per_s = 0;
    double mean_latency_ms = 0;
    double best_per_s = 0;
    double least_latency_ms = 0;
    double capacity() const { return best_per_s * least_latency_ms / 1000; }
  };

  // What a worker keeps to itself so as not to read and write all of it for
  // each request: figures for at most kTick, and what has completed since it
  // wrote last, which is as long ago when it goes on completing.  What it has
  // not written when it falls idle it writes at its next call.
  // Chosen: the original's clock is as coarse while there is load.
  static constexpr Duration kTick = std::chrono::milliseconds(1);
  static constexpr double kUnknown = -1;
  struct Worker {
    Instant figures_until = Instant::min();
    double mean_latency_ms = kUnknown;
    double capacity = kUnknown;
    Instant write_at = Instant::min();
    uint64_t number = 0;  // Of the half that all of the following is of.
    uint64_t completed = 0;
    uint64_t latency_ms = 0;
    uint64_t least_ms = 0;
    uint64_t learned = 0;
    uint64_t learned_us = 0;
  };

  static std::optional<Error> Check(const Config& config);

  // `inflight` requests passed and have not ended, this one not counted.
  [[nodiscard]] Answer Admit(const Config& config, const Signals& signals,
                             int64_t inflight, Worker& worker, Instant now);
  [[nodiscard]] Answer Admit(const Config& config, const Signals& signals,
                             int64_t inflight, Instant now) {
    Worker none;
    return Admit(config, signals, inflight, none, now);
  }
  // The cause for which Admit() would refuse, changing nothing.
  Cause Peek(const Config& config, const Signals& signals, int64_t inflight,
             Instant now) const;

  // One that passed in `window` does not run after all.
  void GiveBack(uint32_t window) { Half(window).passed.TakeAway(window); }

  // One that passed has ended after `latency`.  `teaches`: it did real work.
  void Complete(const Config& config, const Signals& signals, Duration latency,
                bool teaches, Worker& worker, Instant now);
  void Complete(const Config& config, const Signals& signals, Duration latency,
                bool teaches, Instant now) {
    Worker none;
    Complete(config, signals, latency, teaches, none, now);
  }
  // What `worker` has not written yet; all but the last 10 s of it counts for
  // nothing.
  void Write(Worker& worker, Instant now);

  Figures Read(bool robust, Instant now) const;

 private:
  static constexpr Duration kHalf = std::chrono::milliseconds(500);
  static constexpr uint64_t kHalves = 20;  // In the 10 s of `robust`.
  // A sum of latencies needs more room: 24 bits of number, 40 of us.
  using Word = WindowWord<32>;
  using WideWord = WindowWord<24>;

  struct Tally {
    Word passed;
    Word completed;
    WideWord latency_ms;
    Word least_ms;  // 5000 - the least, so that zero is none.
    Word learned;   // For `robust`, with the sum of their latencies.
    WideWord learned_us;
  };

  Tally& Half(uint64_t number) { return halves_[number % halves_.size()]; }
  const Tally& Half(uint64_t number) const {
    return halves_[number % halves_.size()];
  }
  Cause Judge(const Config& config, const Signals& signals, int64_t inflight,
              Worker& worker, uint64_t number) const;
  int64_t Passed(uint64_t number) const;
  double BestOriginal(uint64_t number) const;
  double LeastOriginal(uint64_t number) const;
  double MeanLatencyMs(uint64_t number) const;
  double BestRobust(uint64_t number) const;
  double LeastRobust(uint64_t number) const;
  // Infinite while nothing is learned: a guess would refuse work that could be
  // done.
  double Capacity(bool robust, uint64_t number) const;
  static bool IsArmed(const Config& config, const Signals& signals);

  std::array<Tally, kHalves + 1> halves_;
  // Of `robust`: the last least mean, in us.  0: none yet.
  Shared<uint64_t> base_us_{0};
};

std::string_view Name(SystemRule::Cause cause);  // "none", "qps", ...

}  // namespace weir

#endif  // WEIR_RATE_SYSTEM_RULE_H_
